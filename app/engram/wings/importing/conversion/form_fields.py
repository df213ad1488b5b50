"""Filled fields of forms in PDFs."""

import re
from collections.abc import Callable
from ctypes import c_ushort
from typing import Any

from engram.wings.importing.conversion.outline import flatten_text, library
from engram.wings.importing.conversion.pages import TICKED, UNTICKED

_PASSWORD = 1 << 13
_NUMBERED = re.compile(r"\[\d+\]")


def read_fields(page: Any) -> list[str]:
    """Return a line for each filled field and each box of a page: its name and its value.

    Of buttons of which one is chosen, the chosen one counts. Passwords are left out.
    """
    if page.formenv is None:
        return []
    raw = library("pypdfium2.raw")
    lines = []
    for number in range(raw.FPDFPage_GetAnnotCount(page.raw)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, number)
        try:
            if raw.FPDFAnnot_GetSubtype(annotation) == raw.FPDF_ANNOT_WIDGET:
                lines.append(_read_field(raw, page.formenv.raw, annotation))
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    return [line for line in lines if line]


def _read_field(raw: Any, form: Any, annotation: Any) -> str:
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    label = _read_text(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    label = label or _shorten(_read_text(raw.FPDFAnnot_GetFormFieldName, form, annotation))
    if kind == raw.FPDF_FORMFIELD_CHECKBOX:
        return f"{TICKED if raw.FPDFAnnot_IsChecked(form, annotation) else UNTICKED} {label}"
    if kind == raw.FPDF_FORMFIELD_RADIOBUTTON:
        if not raw.FPDFAnnot_IsChecked(form, annotation):
            return ""
        value = _read_text(raw.FPDFAnnot_GetFormFieldExportValue, form, annotation)
    elif kind in (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX):
        is_text = kind == raw.FPDF_FORMFIELD_TEXTFIELD
        if is_text and raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
            return ""
        chosen = [] if is_text else _list_chosen(raw, form, annotation)
        value = ", ".join(chosen) or _read_text(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    else:
        return ""
    return f"{label}: {value}" if label and value else value


def _list_chosen(raw: Any, form: Any, annotation: Any) -> list[str]:
    """Return the chosen options of a list as a person sees them."""
    return [
        _read_text(raw.FPDFAnnot_GetOptionLabel, form, annotation, number)
        for number in range(raw.FPDFAnnot_GetOptionCount(form, annotation))
        if raw.FPDFAnnot_IsOptionSelected(form, annotation, number)
    ]


def _read_text(function: Callable[..., int], *named: Any) -> str:
    """Call a function of pdfium that fills a buffer with UTF-16."""
    size = function(*named, None, 0)
    buffer = (c_ushort * (size // 2))()
    function(*named, buffer, size)
    return flatten_text(bytes(buffer).decode("utf-16-le", "replace").rstrip("\0"))


def _shorten(name: str) -> str:
    """The last part of a name such as ``form[0].page[0].Street[0]``."""
    return _NUMBERED.sub("", name).rpartition(".")[2].strip()
