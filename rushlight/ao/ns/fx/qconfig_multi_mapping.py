"""Several configurations of each place in a model, for comparing them."""

import copy

from rushlight.ao.quantization.qconfig import qconfig_equals
from rushlight.ao.quantization.qconfig_mapping import _QCONFIG_STYLE_ORDER, QConfigMapping

__all__ = ["QConfigMultiMapping"]

_TABLES = _QCONFIG_STYLE_ORDER[1:]


class QConfigMultiMapping:
    """Mappings side by side: methods are those of `QConfigMapping`, and take a list of configurations.

    Where a list is shorter than others, the rest of the mappings has None at that place.
    """

    def __init__(self):
        self.qconfig_mappings_list = [QConfigMapping()]

    def _filled(self, qconfigs):
        """Equal configurations once, None behind the others, one for each mapping; mappings are added."""
        found = []
        for one in qconfigs:
            if one is not None and not any(qconfig_equals(one, other) for other in found):
                found.append(one)
        mappings = self.qconfig_mappings_list
        while len(mappings) < len(found):
            more = QConfigMapping()
            for style in _TABLES:
                getattr(more, style).update(dict.fromkeys(getattr(mappings[0], style)))
            mappings.append(more)
        return found + [None] * (len(mappings) - len(found))

    def _set(self, method, place, qconfigs):
        for qconfig, mapping in zip(self._filled(qconfigs), self.qconfig_mappings_list):
            getattr(mapping, method)(*place, qconfig)
        return self

    def set_global(self, global_qconfig_list):
        return self._set("set_global", (), global_qconfig_list)

    def set_object_type(self, object_type, qconfig_list):
        return self._set("set_object_type", (object_type,), qconfig_list)

    def set_module_name_regex(self, module_name_regex, qconfig_list):
        return self._set("set_module_name_regex", (module_name_regex,), qconfig_list)

    def set_module_name(self, module_name, qconfig_list):
        return self._set("set_module_name", (module_name,), qconfig_list)

    def set_module_name_object_type_order(self, module_name, object_type, index, qconfig_list):
        place = (module_name, object_type, index)
        return self._set("set_module_name_object_type_order", place, qconfig_list)

    @classmethod
    def from_list_qconfig_mapping(cls, qconfig_mapping_list):
        """The mappings of a list; what one has and others lack is None for those."""
        made = cls()
        made.qconfig_mappings_list = copy.deepcopy(qconfig_mapping_list)
        everywhere = [mapping.global_qconfig for mapping in made.qconfig_mappings_list]
        made.set_global(everywhere)
        for style in _TABLES:
            tables = [getattr(mapping, style) for mapping in made.qconfig_mappings_list]
            for place in dict.fromkeys(key for table in tables for key in table):
                found = made._filled([table.get(place) for table in tables])
                for table, qconfig in zip(tables, found):
                    table[place] = qconfig
        return made

    def __repr__(self):
        shown = ",\n ".join(map(repr, self.qconfig_mappings_list))
        return f"QConfigMultiMapping [\n {shown}\n]"
