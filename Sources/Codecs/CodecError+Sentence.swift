extension CodecError: CustomStringConvertible {
  /// The whole sentence: "cannot read JSON: a comma is missing, at line 3, column 14".
  public var description: String {
    let verb = kind == .unrepresentable ? "write" : "read"
    let place =
      switch position {
      case .mark(let mark): ", at line \(mark.line), column \(mark.column)"
      case .offset(let offset): ", at byte \(offset)"
      case nil: ""
      }
    return "cannot \(verb) \(format.rawValue): \(reason)\(place)"
  }

  /// What to do about it, where there is something to say.
  public var hint: String? {
    switch (kind, format) {
    case (.malformed, .json), (.truncated, .json), (.malformed, .yaml), (.truncated, .yaml):
      "correct the text at that place"
    case (.unsupported, .yaml): "write it without that feature of YAML"
    case (.malformed, _), (.truncated, _):
      "the data is damaged: check the storage, or take another copy"
    case (.unsupported, _): "it was made by another program or a newer version"
    case (.limit, _): "check that it is the right file: it is larger than any that is expected"
    case (.unrepresentable, _): nil
    case (.library, _): "check that there is free memory"
    }
  }
}
