"""Programs in C++ and C# that use a package, written for the inputs and outputs of its model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from winml.modelkit.ep import catalog
from winml.modelkit.packaging.manifest import PackagedArtifact, Port

_CPP = {
    "float32": "float", "float64": "double", "int64": "int64_t", "int32": "int32_t", "int16": "int16_t",
    "int8": "int8_t", "uint8": "uint8_t", "bool": "bool",
}  # fmt: skip
_CSHARP = {
    "float32": "float", "float64": "double", "int64": "long", "int32": "int", "int16": "short", "int8": "sbyte",
    "uint8": "byte", "bool": "bool",
}  # fmt: skip
_LEVELS = {"disable": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED",
           "all": "ORT_ENABLE_ALL"}  # fmt: skip
_NEXT = ",\n" + " " * 12
_DEFAULT_BELOW = 2
"""Whole numbers of a trial where their range is not known: zero and one are classes, masks and tokens."""


def why_no_samples(inputs: Sequence[Port], outputs: Sequence[Port]) -> str | None:
    """Why no program can be written for a model; None when one can."""
    for port in (*inputs, *outputs):
        if port.type not in _CPP:
            return f"`{port.name}` is of type {port.type}, which the sample programs do not fill or print"
    open_ports = [port.name for port in inputs if port.size is None]
    return f"the sizes of `{open_ports[0]}` are not known" if open_ports else None


def trial_value(port: Port, index: int) -> float:
    """What the programs put into an input, so that their outputs can be compared: a pattern of its index."""
    if port.type.startswith("float"):
        return (index * 31 % 97) / 97.0
    return float(index % (port.below or _DEFAULT_BELOW))


def _text(word: str) -> str:
    """A literal of C++ and C#: JSON with every other character escaped."""
    return json.dumps(word).replace("?", "\\u003f") if "??" in word else json.dumps(word)


def _fill(port: Port, kind: str, index: str) -> str:
    if port.type.startswith("float"):
        return f"static_cast<{kind}>(({index} * 31 % 97) / 97.0)"
    if port.type == "bool":
        return f"{index} % 2 != 0"
    return f"static_cast<{kind}>({index} % {port.below or _DEFAULT_BELOW})"


def cpp_program(
    name: str, inputs: Sequence[Port], outputs: Sequence[Port], artifacts: Sequence[PackagedArtifact]
) -> str:
    """`main.cpp`: tries the artifacts in their order and says why not the others."""
    rows = "\n".join(_cpp_artifact(one) for one in artifacts)
    blocks = "\n".join(_cpp_input(port) for port in inputs)
    prints = "\n".join(
        f"    print_output<{_CPP[port.type]}>({_text(port.name)}, results[{number}]);"
        for number, port in enumerate(outputs)
    )
    names = ", ".join(_text(port.name) for port in inputs), ", ".join(_text(port.name) for port in outputs)
    return f"""// Runs the package {_text(name)} with ONNX Runtime; needs its C++ headers and library, 1.22 or newer.
//
//   c++ -std=c++17 main.cpp -I INCLUDE -L LIB -lonnxruntime -o sample
//   ./sample PACKAGE [PROVIDER=LIBRARY ...]
//
// A plugin (QNNExecutionProvider=libonnxruntime_providers_qnn.so) is registered from the library that is
// named; verify the package before (`winml package verify`): this program does not hash its files.
#include <onnxruntime_cxx_api.h>

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct Artifact {{
  std::string target, provider, device, model;
  std::unordered_map<std::string, std::string> options, entries;
  GraphOptimizationLevel level;
  int threads;  // 0: the runtime's own number
}};

// In the order in which they are tried.
static const std::vector<Artifact> artifacts = {{
{rows}
}};

static std::string kind_of(const Ort::ConstEpDevice& device) {{
  switch (device.Device().Type()) {{
    case OrtHardwareDeviceType_NPU: return "npu";
    case OrtHardwareDeviceType_GPU: return "gpu";
    default: return "cpu";
  }}
}}

static std::unique_ptr<Ort::Session> open_artifact(Ort::Env& env, const Artifact& artifact,
                                                   const std::filesystem::path& package) {{
  Ort::SessionOptions options;
  options.SetGraphOptimizationLevel(artifact.level);
  if (artifact.threads) options.SetIntraOpNumThreads(artifact.threads);
  for (const auto& entry : artifact.entries) options.AddConfigEntry(entry.first.c_str(), entry.second.c_str());
  if (artifact.provider != "CPUExecutionProvider") {{
    std::vector<Ort::ConstEpDevice> chosen;
    for (const auto& device : env.GetEpDevices())
      if (artifact.provider == device.EpName() && kind_of(device) == artifact.device && chosen.empty())
        chosen.push_back(device);
    if (chosen.empty()) throw std::runtime_error(artifact.provider + " finds no " + artifact.device + " here");
    options.AppendExecutionProvider_V2(env, chosen, artifact.options);
  }}
  return std::make_unique<Ort::Session>(env, (package / artifact.model).c_str(), options);
}}

template <typename T>
static void print_output(const char* name, const Ort::Value& value) {{
  auto shape = value.GetTensorTypeAndShapeInfo().GetShape();
  const T* data = value.GetTensorData<T>();
  size_t count = value.GetTensorTypeAndShapeInfo().GetElementCount();
  std::cout << name << " [";
  for (size_t i = 0; i < shape.size(); ++i) std::cout << (i ? "," : "") << shape[i];
  std::cout << "]";
  std::cout.precision(9);
  for (size_t i = 0; i < count && i < 16; ++i) std::cout << " " << +data[i];
  std::cout << "\\n";
}}

int main(int argc, char** argv) try {{
  if (argc < 2) {{
    std::cerr << "usage: sample PACKAGE [PROVIDER=LIBRARY ...]\\n";
    return 2;
  }}
  Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "sample");
  for (int i = 2; i < argc; ++i) {{
    std::string word = argv[i];
    auto split = word.find('=');
    if (split == std::string::npos) throw std::runtime_error("write PROVIDER=LIBRARY, not " + word);
    std::filesystem::path library = word.substr(split + 1);
    env.RegisterExecutionProviderLibrary(word.substr(0, split).c_str(), library.c_str());
  }}

  std::unique_ptr<Ort::Session> session;
  for (const auto& artifact : artifacts) {{
    try {{
      session = open_artifact(env, artifact, argv[1]);
      std::cerr << "opened on " << artifact.target << "\\n";
      break;
    }} catch (const std::exception& error) {{
      std::cerr << "not on " << artifact.target << ": " << error.what() << "\\n";
    }}
  }}
  if (!session) return 1;

  // A pattern instead of real data: put your own values here.
  auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::vector<Ort::Value> values;
{blocks}
  const char* input_names[] = {{{names[0]}}};
  const char* output_names[] = {{{names[1]}}};
  auto results = session->Run(Ort::RunOptions{{nullptr}}, input_names, values.data(), values.size(), output_names,
                              {len(outputs)});
{prints}
  return 0;
}} catch (const std::exception& error) {{
  std::cerr << "error: " << error.what() << "\\n";
  return 1;
}}
"""


def _cpp_artifact(one: PackagedArtifact) -> str:
    info = catalog.BY_NAME[one.target.ep]
    options = {**info.device_options.get(one.target.device, {}), **one.session.ep_options}
    maps = ", ".join(
        "{" + ", ".join(f"{{{_text(key)}, {_text(value)}}}" for key, value in pairs.items()) + "}"
        for pairs in (options, one.session.config_entries)
    )
    words = ", ".join(map(_text, (str(one.target), info.full_name, one.target.device, one.model)))
    level = _LEVELS[one.session.optimization_level]
    return f"    {{{words}, {maps},\n     {level}, {one.session.threads or 0}}},"


def _cpp_input(port: Port) -> str:
    kind = _CPP[port.type]
    assert port.size is not None
    sizes = ", ".join(map(str, port.size))
    variable = f"std::unique_ptr<{kind}[]> data(new {kind}[count])"
    return f"""  std::vector<int64_t> shape_{_id(port)} = {{{sizes}}};
  size_t count_{_id(port)} = 1;
  for (auto size : shape_{_id(port)}) count_{_id(port)} *= static_cast<size_t>(size);
  {variable.replace("data(", f"data_{_id(port)}(").replace("[count]", f"[count_{_id(port)}]")};
  for (size_t i = 0; i < count_{_id(port)}; ++i) data_{_id(port)}[i] = {_fill(port, kind, "i")};
  values.push_back(Ort::Value::CreateTensor<{kind}>(memory, data_{_id(port)}.get(), count_{_id(port)},
                                                    shape_{_id(port)}.data(), shape_{_id(port)}.size()));"""


def _id(port: Port) -> str:
    return "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in port.name)


def csharp_program(
    name: str, inputs: Sequence[Port], outputs: Sequence[Port], artifacts: Sequence[PackagedArtifact]
) -> str:
    """`Program.cs`: the same with Microsoft.ML.OnnxRuntime, which Windows ML comes with."""
    rows = "\n".join(_csharp_artifact(one) for one in artifacts)
    blocks = "\n".join(_csharp_input(port) for port in inputs)
    prints = "\n".join(
        f"            Print<{_CSHARP[port.type]}>({_text(port.name)}, results[{number}]);"
        for number, port in enumerate(outputs)
    )
    names = ", ".join(_text(port.name) for port in inputs), ", ".join(_text(port.name) for port in outputs)
    return f"""// Runs the package {_text(name)} with Microsoft.ML.OnnxRuntime, or with Windows ML, whose
// catalog registers the providers of the machine:
// await ExecutionProviderCatalog.GetDefault().EnsureAndRegisterCertifiedAsync().
//
//   sample PACKAGE [PROVIDER=LIBRARY ...]
//
// Verify the package before (`winml package verify`): this program does not hash its files.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using Microsoft.ML.OnnxRuntime;

sealed class Artifact
{{
    public string Target, Provider, Device, Model;
    public Dictionary<string, string> Options, Entries;
    public GraphOptimizationLevel Level;
    public int Threads; // 0: the runtime's own number
}}

static class Program
{{
    // In the order in which they are tried.
    static readonly Artifact[] Artifacts =
    {{
{rows}
    }};

    static InferenceSession Open(Artifact artifact, string package)
    {{
        var options = new SessionOptions {{ GraphOptimizationLevel = artifact.Level }};
        if (artifact.Threads != 0) options.IntraOpNumThreads = artifact.Threads;
        foreach (var entry in artifact.Entries) options.AddSessionConfigEntry(entry.Key, entry.Value);
        if (artifact.Provider != "CPUExecutionProvider")
        {{
            var device = OrtEnv.Instance().GetEpDevices().FirstOrDefault(
                d => d.EpName == artifact.Provider
                    && d.HardwareDevice.Type.ToString().ToLowerInvariant() == artifact.Device);
            if (device == null)
                throw new InvalidOperationException(artifact.Provider + " finds no " + artifact.Device + " here");
            options.AppendExecutionProvider(OrtEnv.Instance(), new[] {{ device }}, artifact.Options);
        }}
        var model = artifact.Model.Replace('/', Path.DirectorySeparatorChar);
        return new InferenceSession(Path.Combine(package, model), options);
    }}

    static string Show(object value)
    {{
        if (value is bool) return (bool)value ? "1" : "0";
        var format = value is float || value is double ? "G9" : null;
        return ((IFormattable)value).ToString(format, CultureInfo.InvariantCulture);
    }}

    static void Print<T>(string name, OrtValue value) where T : unmanaged
    {{
        var shape = value.GetTensorTypeAndShape().Shape;
        var line = name + " [" + string.Join(",", shape) + "]";
        var data = value.GetTensorDataAsSpan<T>();
        for (int i = 0; i < data.Length && i < 16; ++i)
            line += " " + Show(data[i]);
        Console.WriteLine(line);
    }}

    static int Main(string[] args)
    {{
        if (args.Length < 1)
        {{
            Console.Error.WriteLine("usage: sample PACKAGE [PROVIDER=LIBRARY ...]");
            return 2;
        }}
        foreach (var word in args.Skip(1))
        {{
            int split = word.IndexOf('=');
            if (split < 0) throw new ArgumentException("write PROVIDER=LIBRARY, not " + word);
            OrtEnv.Instance().RegisterExecutionProviderLibrary(word.Substring(0, split), word.Substring(split + 1));
        }}
        InferenceSession session = null;
        foreach (var artifact in Artifacts)
        {{
            try
            {{
                session = Open(artifact, args[0]);
                Console.Error.WriteLine("opened on " + artifact.Target);
                break;
            }}
            catch (Exception error)
            {{
                Console.Error.WriteLine("not on " + artifact.Target + ": " + error.Message);
            }}
        }}
        if (session == null) return 1;

        // A pattern instead of real data: put your own values here.
        var values = new List<OrtValue>();
{blocks}
        using (session)
        using (var run = new RunOptions())
        using (var results = session.Run(run, new[] {{ {names[0]} }}, values, new[] {{ {names[1]} }}))
        {{
{prints}
        }}
        return 0;
    }}
}}
"""


def _csharp_artifact(one: PackagedArtifact) -> str:
    info = catalog.BY_NAME[one.target.ep]
    options = {**info.device_options.get(one.target.device, {}), **one.session.ep_options}
    named = {"Options": options, "Entries": one.session.config_entries}
    lines = [
        f"Target = {_text(str(one.target))}, Provider = {_text(info.full_name)}, Device = {_text(one.target.device)}",
        f"Model = {_text(one.model)}",
        *(f"{name} = new Dictionary<string, string> {{ {_csharp_pairs(pairs)} }}" for name, pairs in named.items()),
        f"Level = GraphOptimizationLevel.{_LEVELS[one.session.optimization_level]}",
        f"Threads = {one.session.threads or 0}",
    ]
    return f"        new Artifact {{ {_NEXT.join(lines)} }},"


def _csharp_pairs(pairs: Mapping[str, str]) -> str:
    return ", ".join(f"{{ {_text(key)}, {_text(value)} }}" for key, value in pairs.items())


def _csharp_input(port: Port) -> str:
    kind, name = _CSHARP[port.type], _id(port)
    assert port.size is not None
    sizes = ", ".join(map(str, port.size))
    if port.type.startswith("float"):
        value = f"({kind})((i * 31 % 97) / 97.0)"
    else:
        value = "i % 2 != 0" if port.type == "bool" else f"({kind})(i % {port.below or _DEFAULT_BELOW})"
    return f"""        long[] shape_{name} = {{ {sizes} }};
        var data_{name} = new {kind}[shape_{name}.Aggregate(1L, (a, b) => a * b)];
        for (long i = 0; i < data_{name}.Length; ++i) data_{name}[i] = {value};
        values.Add(OrtValue.CreateTensorValueFromMemory(data_{name}, shape_{name}));"""


CSHARP_PROJECT = """<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>net8.0</TargetFramework>
    <AssemblyName>sample</AssemblyName>
  </PropertyGroup>
  <ItemGroup>
    <PackageReference Include="Microsoft.ML.OnnxRuntime" Version="1.24.*" />
  </ItemGroup>
</Project>
"""
