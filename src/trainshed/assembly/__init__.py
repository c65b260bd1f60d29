"""The composition root: the only package that names an adapter. `assembly.assemble` makes a server's parts.

One module makes one part, whole, by keyword. Nothing is wired after it was made: what two parts need of each
other (a queue, a notifier) is made first, in `shared`, and handed to both. Making a part starts nothing:
`Assembly.open` does.
"""
