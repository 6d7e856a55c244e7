(field_definition property: (property_identifier) @field)
(field_definition property: (_) @name value: [(arrow_function) (function_expression)]) @definition.method
