(public_field_definition name: (property_identifier) @field)
(public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @definition.method
(property_signature name: (_) @field)
(enum_body name: (_) @field)
(enum_assignment name: (_) @field)
(type_alias_declaration value: (object_type) @body)

(enum_declaration name: (_) @name) @definition.enum
(type_alias_declaration name: (_) @name) @definition.type
(internal_module name: (identifier) @name) @definition.module

(_ (accessibility_modifier) @_m name: (_) @hidden (#not-eq? @_m "public"))
(internal_module body: (_ (_ name: (_) @hidden)))
(import_require_clause source: (string (string_fragment) @import))
(ambient_declaration (_) @inner) @outer
