ripple
types
--language
typescript
--config
ripple.toml
