"""One digest for what a model computes: equal for two files that differ only in names and order.

Covered: operators, attributes, wiring, contents of the initializers that are used, opset imports, local functions, and
the names, types and shapes of the graph's inputs and outputs. Not covered: names of nodes, values and initializers
(unless they are inputs too), the order of nodes, how a tensor is stored, documentation, metadata, producer, IR version,
declared shapes inside the graph.
"""

from __future__ import annotations

import struct
from collections import Counter, deque
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from onnx import AttributeProto, GraphProto, SparseTensorProto, TensorProto, TypeProto

from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.graph import walk
from winml.modelkit.graph.tensors import content

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from onnx import FunctionProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto

_FIELDS = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
_INVALID = "the model is invalid; export it again"
_SINGLE = ("f", "i", "s", "t", "g", "sparse_tensor", "tp")


def fingerprint(model: ModelProto) -> str:
    """The digest as `sha256:...`. External data must be loaded.

    An EPContext node counts by its attributes: a context binary in a file of its own counts by that file's name only.
    """
    graph = model.graph
    scope = _Scope()
    _define_initializers(graph, scope)
    for value in graph.input:
        default = scope.values.get(value.name, b"")
        scope.values[value.name] = _digest("input", value.name, _type(value.type), default)
    body = _body(graph.node, [value.name for value in graph.output], scope)
    digest = _digest(
        "model",
        _opsets(model.opset_import),
        _digest("inputs", *(scope.values[value.name] for value in graph.input)),
        _digest("outputs", *(part for value in graph.output for part in (value.name, _type(value.type)))),
        body,
        *sorted(_function(function) for function in model.functions),
    )
    return f"sha256:{digest.hex()}"


class _Scope:
    """The values that nodes of one graph may use, by name, and how often each is used."""

    def __init__(self, outer: _Scope | None = None) -> None:
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.values: dict[str, bytes] = {}
        self.uses: Counter[str] = Counter()

    def find(self, name: str) -> _Scope | None:
        scope: _Scope | None = self
        while scope is not None and name not in scope.values:
            scope = scope.outer
        return scope

    def use(self, name: str) -> bytes:
        """The digest of a value, counted as one more use; nothing has the empty name."""
        if not name:
            return b""
        scope = self.find(name)
        if scope is None:
            raise ModelFileError(f"value `{name}` is used but no node produces it", hint=_INVALID)
        scope.uses[name] += 1
        return scope.values[name]


def _digest(*parts: bytes | str | int) -> bytes:
    digest = sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()


def _opsets(imports: Iterable[OperatorSetIdProto]) -> bytes:
    return _digest("opsets", *sorted({f"{walk.domain_of(entry.domain)}={entry.version}" for entry in imports}))


def _function(function: FunctionProto) -> bytes:
    scope = _Scope()
    for index, name in enumerate(function.input):
        scope.values[name] = _digest("parameter", 0, index)
    return _digest(
        "function",
        walk.domain_of(function.domain),
        function.name,
        function.overload,
        _opsets(function.opset_import),
        len(function.input),
        _digest("attributes", *sorted(function.attribute)),
        *_attributes(function.attribute_proto, scope),
        _body(function.node, function.output, scope),
    )


def _subgraph(graph: GraphProto, outer: _Scope) -> bytes:
    scope = _Scope(outer)
    _define_initializers(graph, scope)
    for index, value in enumerate(graph.input):
        scope.values[value.name] = _digest("parameter", scope.depth, index)
    return _digest("graph", len(graph.input), _body(graph.node, [value.name for value in graph.output], scope))


def _define_initializers(graph: GraphProto, scope: _Scope) -> None:
    for tensor in graph.initializer:
        scope.values[tensor.name] = _tensor(tensor)
    for sparse in graph.sparse_initializer:
        scope.values[sparse.values.name] = _sparse(sparse)


def _body(nodes: Sequence[NodeProto], outputs: Iterable[str], scope: _Scope) -> bytes:
    """The digest of nodes in any order.

    How often each output is used distinguishes two equal nodes: `f(a, a)` with an idle twin of `a` is not `f(a, twin)`.
    """
    digests: list[tuple[NodeProto, bytes]] = []
    for node in _in_order(nodes, scope):
        digest = _node(node, scope)
        digests.append((node, digest))
        for index, name in enumerate(node.output):
            if name:
                scope.values[name] = _digest("output", index, digest)
    results = [scope.use(name) for name in outputs]
    members = sorted(_digest("node", digest, *(scope.uses[name] for name in node.output)) for node, digest in digests)
    return _digest("body", len(members), *members, *results)


def _in_order(nodes: Sequence[NodeProto], scope: _Scope) -> Iterator[NodeProto]:
    """The nodes so that each comes after those whose values it uses, inside its subgraphs too."""
    makers = _makers(nodes, scope)
    users: dict[int, list[int]] = {}
    missing = [0] * len(nodes)
    for index, node in enumerate(nodes):
        sources = {makers[name] for name in _names_used(node) if name in makers}
        missing[index] = len(sources)
        for source in sources:
            users.setdefault(source, []).append(index)
    ready = deque(index for index, count in enumerate(missing) if count == 0)
    done = 0
    while ready:
        index = ready.popleft()
        done += 1
        yield nodes[index]
        for user in users.get(index, ()):
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    if done < len(nodes):
        waiting = next(node for node, count in zip(nodes, missing, strict=True) if count)
        raise ModelFileError(
            f"{len(nodes) - done} nodes are in a cycle or depend on one; the first is {_label(waiting)}", hint=_INVALID
        )


def _makers(nodes: Sequence[NodeProto], scope: _Scope) -> dict[str, int]:
    makers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name in makers or name in scope.values:
                raise ModelFileError(
                    f"value `{name}` is produced twice, the second time by {_label(node)}", hint=_INVALID
                )
            if name:
                makers[name] = index
    return makers


def _label(node: NodeProto) -> str:
    return f"{walk.op_key(node)} `{node.name}`" if node.name else f"{walk.op_key(node)} without a name"


def _names_used(node: NodeProto) -> set[str]:
    """The names a node takes from around it, by its inputs or inside its subgraphs."""
    names = {name for name in node.input if name}
    for graph in walk.subgraphs(node):
        names |= _names_captured(graph)
    return names


def _names_captured(graph: GraphProto) -> set[str]:
    used = {value.name for value in graph.output}
    made = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    made |= {sparse.values.name for sparse in graph.sparse_initializer}
    for node in graph.node:
        used |= _names_used(node)
        made.update(node.output)
    return used - made


def _node(node: NodeProto, scope: _Scope) -> bytes:
    return _digest(
        "op",
        node.op_type,
        walk.domain_of(node.domain),
        node.overload,
        *_attributes(node.attribute, scope),
        "inputs",
        *(scope.use(name) for name in _without_trailing_gaps(node.input)),
        "outputs",
        *("made" if name else "" for name in _without_trailing_gaps(node.output)),
    )


def _without_trailing_gaps(names: Sequence[str]) -> Sequence[str]:
    """The names without empty ones at the end, which mean the same as omitting them."""
    count = len(names)
    while count and not names[count - 1]:
        count -= 1
    return names[:count]


def _attributes(attributes: Sequence[AttributeProto], scope: _Scope) -> Iterator[bytes]:
    for attribute in sorted(attributes, key=lambda attribute: attribute.name):
        yield _attribute(attribute, scope)


def _attribute(attribute: AttributeProto, scope: _Scope) -> bytes:
    # files of the first IR versions name no attribute type
    written = (field.name for field, _ in attribute.ListFields() if field.name in _FIELDS.values())
    field = _FIELDS.get(attribute.type) or next(written, "")
    if attribute.ref_attr_name or not field:
        return _digest("attribute", attribute.name, field, "from", attribute.ref_attr_name)
    value = getattr(attribute, field)
    items = [value] if field in _SINGLE else value
    return _digest("attribute", attribute.name, field, *(_item(item, scope) for item in items))


def _item(value: Any, scope: _Scope) -> bytes | str | int:
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, TensorProto):
        return _tensor(value)
    if isinstance(value, GraphProto):
        return _subgraph(value, scope)
    if isinstance(value, SparseTensorProto):
        return _sparse(value)
    if isinstance(value, TypeProto):
        return _type(value)
    number_or_text: bytes | int = value
    return number_or_text


def _tensor(tensor: TensorProto) -> bytes:
    return _digest("tensor", tensor.data_type, len(tensor.dims), *tensor.dims, content(tensor))


def _sparse(sparse: SparseTensorProto) -> bytes:
    return _digest("sparse", len(sparse.dims), *sparse.dims, _tensor(sparse.values), _tensor(sparse.indices))


def _type(kind: TypeProto) -> bytes:
    which = kind.WhichOneof("value") or ""
    if which in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(kind, which)
        shape = _digest("shape", *map(_dim, tensor.shape.dim)) if tensor.HasField("shape") else b""
        return _digest(which, tensor.elem_type, shape)
    if which in ("sequence_type", "optional_type"):
        return _digest(which, _type(getattr(kind, which).elem_type))
    if which == "map_type":
        return _digest(which, kind.map_type.key_type, _type(kind.map_type.value_type))
    return _digest(which, kind.SerializeToString(deterministic=True))


def _dim(dim: TensorShapeProto.Dimension) -> str:
    """A size, a symbol, or neither; older exporters write -1 for an unknown size."""
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return f"={dim.dim_value}"
    return f"?{dim.dim_param}"
