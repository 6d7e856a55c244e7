; What the grammar's own tags leave out.
(line_comment) @comment
(block_comment) @comment
(annotation) @attribute
(marker_annotation) @attribute
(_ body: (_) @body)
(method_declaration body: (_) @local)
(constructor_declaration body: (_) @local)
(lambda_expression body: (_) @local)

(enum_declaration name: (_) @name) @definition.enum
(record_declaration name: (_) @name) @definition.class
(annotation_type_declaration name: (_) @name) @definition.interface
(constructor_declaration name: (_) @name) @definition.method
(compact_constructor_declaration name: (_) @name) @definition.method
(annotation_type_element_declaration name: (_) @name) @definition.method
(field_declaration
  (modifiers "static" "final")
  declarator: (variable_declarator name: (_) @name) @definition.constant)
(constant_declaration declarator: (variable_declarator name: (_) @name) @definition.constant)

(field_declaration declarator: (variable_declarator name: (_) @field))
(field_declaration (modifiers "static") declarator: (variable_declarator name: (_) @hidden_field))
(enum_constant name: (_) @field)
(record_declaration parameters: (formal_parameters (formal_parameter name: (_) @field)))

(_ (modifiers "private") name: (_) @hidden)
(field_declaration (modifiers "private") declarator: (variable_declarator name: (_) @hidden))

(import_declaration) @import
