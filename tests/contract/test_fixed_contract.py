"""The names, numbers and types that other people's clients were built from."""

import re
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

from fila.wire._pb import admin_pb2, messages_pb2, service_pb2

FROZEN = Path(__file__).with_name("fixed_contract.txt").read_text().splitlines()
FILES = [module.DESCRIPTOR for module in (messages_pb2, service_pb2, admin_pb2)]
FIRST_FREE_NUMBER = 20

_TYPES = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}


def _messages() -> dict[str, Descriptor]:
    return {name: found for file in FILES for name, found in file.message_types_by_name.items()}


def _type_name(field: FieldDescriptor) -> str:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        parts = field.message_type.fields_by_name
        return f"map<{_type_name(parts['key'])},{_type_name(parts['value'])}>"
    if field.message_type is not None:
        name = field.message_type.full_name.removeprefix("fila.v1.")
    else:
        name = _TYPES[field.type]
    return f"repeated {name}" if field.is_repeated else name


def _method_line(method: MethodDescriptor) -> str:
    stream = "stream " if method.server_streaming else ""
    service = method.containing_service.name
    request, response = method.input_type.name, method.output_type.name
    return f"rpc {service}.{method.name}({request}) returns ({stream}{response})"


def _actual_lines() -> set[str]:
    messages = _messages()
    fields = {
        f"field {name}.{field.name} = {field.number} {_type_name(field)}"
        for name, message in messages.items()
        for field in message.fields
    }
    methods = {
        _method_line(method)
        for file in FILES
        for service in file.services_by_name.values()
        for method in service.methods
    }
    return fields | methods | {f"message {name}" for name in messages}


def _frozen_lines() -> list[str]:
    return [line for line in FROZEN if line and not line.startswith("#")]


@pytest.mark.parametrize("line", _frozen_lines())
def test_the_fixed_contract_is_unchanged(line: str) -> None:
    assert line in _actual_lines()


def test_new_fields_of_fixed_messages_start_at_20() -> None:
    frozen = "\n".join(_frozen_lines())
    fixed_messages = set(re.findall(r"^(?:field|message) (\w+)", frozen, re.MULTILINE))

    added = {
        f"field {name}.{field.name} = {field.number} {_type_name(field)}"
        for name in fixed_messages
        for field in _messages()[name].fields
        if field.number < FIRST_FREE_NUMBER
    }

    assert added <= set(_frozen_lines())


def test_the_package_is_fila_v1() -> None:
    assert {file.package for file in FILES} == {"fila.v1"}
