extension CodecError: CustomStringConvertible {
  /// The whole message: "cannot read JSON: a comma is missing, at line 3, column 14".
  package var description: String {
    let verb = kind == .unrepresentable ? "write" : "read"
    let place =
      switch position {
      case .mark(let mark): ", at line \(mark.line), column \(mark.column)"
      case .offset(let offset): ", at byte \(offset)"
      case nil: ""
      }
    return "cannot \(verb) \(format.rawValue): \(reason)\(place)"
  }

  /// The remedy, or nil if there is none to suggest.
  package var hint: String? {
    switch (kind, format) {
    case (.malformed, .json), (.truncated, .json), (.malformed, .yaml), (.truncated, .yaml):
      "correct the text at that position"
    case (.unsupported, .yaml): "write it without that YAML feature"
    case (.malformed, _), (.truncated, _):
      "the data is damaged: check the storage, or use another copy"
    case (.unsupported, _): "it was written by another program or a newer version"
    case (.limit, _): "check that it is the right file: it exceeds the expected size"
    case (.unrepresentable, _): nil
    case (.library, _): "check that enough memory is free"
    }
  }
}
