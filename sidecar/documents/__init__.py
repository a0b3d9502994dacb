"""What a model can be given of an attachment: a document's text, and a picture of a sensible size."""
