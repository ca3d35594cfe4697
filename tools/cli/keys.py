ripple
types
--language
python
