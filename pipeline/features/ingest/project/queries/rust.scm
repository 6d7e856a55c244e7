; What the grammar's own tags leave out.
(line_comment) @comment
(block_comment) @comment
(attribute_item) @attribute
(_ body: (_) @body)
(function_item body: (_) @local)
(closure_expression body: (_) @local)
(macro_rule) @body

; The methods of a trait are told with the trait, not with each that has it.
(impl_item trait: (_) type: (_) @name @public body: (_) @local) @definition.implementation
(impl_item !trait type: (_) @name @public) @definition.module
(function_signature_item name: (_) @name) @definition.method
(const_item name: (_) @name) @definition.constant
(static_item name: (_) @name) @definition.constant

(enum_variant name: (_) @field)
(field_declaration (visibility_modifier) name: (_) @field)

(_ (visibility_modifier) name: (_) @public)
(trait_item body: (_ (_ name: (_) @public)))
((attribute_item) @_a . (macro_definition name: (_) @public) (#match? @_a "macro_export"))

(use_declaration argument: (_) @import)
(mod_item !body) @import
