public import ArgumentParser
public import SystemIO

/// An argument as text, for a parser that handles only strings.
///
/// A byte that is not part of valid UTF-8 is escaped as the private-use scalar U+10FF00 + byte.
/// Each of the four bytes of such a scalar in the argument is escaped, too, which makes the escaped
/// text unambiguous.
extension ByteString: ExpressibleByArgument {
  /// The argument as text for the parser.
  var argument: String {
    if let text = utf8, !text.hasEscapedBytes { return text }
    var text = String.UnicodeScalarView()
    var rest = bytes
    while let first = rest.first {
      if let (scalar, length) = Self.firstScalar(of: rest), scalar.escapedByte == nil {
        text.append(scalar)
        rest = rest.dropFirst(length)
      } else {
        text.append(Unicode.Scalar(escaping: first))
        rest = rest.dropFirst()
      }
    }
    return String(text)
  }

  /// Creates the argument from the parser's text.
  public init(argument: String) {
    var bytes: [UInt8] = []
    for scalar in argument.unicodeScalars {
      if let byte = scalar.escapedByte {
        bytes.append(byte)
      } else {
        bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      }
    }
    self.init(bytes)
  }
}

extension String {
  /// Whether the text contains escaped bytes.
  var hasEscapedBytes: Bool { unicodeScalars.contains { $0.escapedByte != nil } }

  /// The parser's text with escaped bytes as they are displayed.
  var showingBytes: String {
    var shown = ""
    var run: [UInt8] = []
    for scalar in unicodeScalars {
      if let byte = scalar.escapedByte {
        run.append(byte)
      } else {
        shown += ByteString(run).description
        shown.unicodeScalars.append(scalar)
        run = []
      }
    }
    return shown + ByteString(run).description
  }
}

extension Unicode.Scalar {
  private static let firstEscape: UInt32 = 0x10FF00

  /// Creates the scalar that escapes a byte. The highest one is the last Unicode scalar.
  fileprivate init(escaping byte: UInt8) {
    self = Unicode.Scalar(Self.firstEscape + UInt32(byte)) ?? "\u{FFFD}"
  }

  /// The escaped byte; nil for a scalar that is not an escape.
  fileprivate var escapedByte: UInt8? {
    value >= Self.firstEscape ? UInt8(value - Self.firstEscape) : nil
  }
}

extension ParsableCommand {
  /// Refuses bytes that are not UTF-8 in a text argument, such as a tag. Arguments that may contain
  /// other bytes are of type `ByteString`; each `String` is text.
  func requireText(in words: [String]) throws(UsageError) {
    guard words.contains(where: \.hasEscapedBytes),
      let text = Self.texts(in: self).first(where: \.hasEscapedBytes)
    else { return }
    throw UsageError(
      .invalidInput, "'\(ByteString(argument: text))' is not valid text",
      hint:
        "only paths, patterns and names may contain bytes that are not UTF-8, or U+10FF00 and above"
    )
  }

  /// Returns all text arguments of a command, including those in its option groups.
  private static func texts(in value: Any) -> [String] {
    if let text = value as? String { return [text] }
    return Mirror(reflecting: value).children.flatMap { texts(in: $0.value) }
  }
}

extension UsageError {
  /// Creates an error from a message of the argument parser: in lower case, without a full stop,
  /// and with the advice and the command's help as the hint.
  ///
  /// - Parameter advice: The advice that replaces that of the parser, which knows only options of
  ///   a similar spelling.
  init(parser message: String, _ fullMessage: String, advice: String? = nil) {
    let parts = message.showingBytes.split(separator: ". ", maxSplits: 1).map {
      Self.begunSmall($0)
    }
    let command = fullMessage.firstMatch(of: /'(sandboxctl[^']*--help)'/)?.output.1
    let help = "see '\(command ?? "sandboxctl --help")'"
    let isSpelling = parts.count > 1 && parts[1].hasPrefix("did you mean ")
    let own = parts.count > 1 && !isSpelling ? parts[1] + (parts[1].hasSuffix("?") ? "" : ";") : nil
    let hint = [advice ?? own, help].compactMap(\.self).joined(separator: " ")
    self.init(Self.code(ofParser: message), parts.first ?? message.showingBytes, hint: hint)
  }

  /// Returns the code for a message of the parser, whose errors have no other public properties.
  private static func code(ofParser message: String) -> ErrorCode {
    if message.hasPrefix("The value '") { return .invalidValue }
    let conflict = message.contains(" had already been set with ")
    return conflict || message.hasSuffix(" cannot be used together.")
      ? .optionsConflict : .invalidArguments
  }

  private static func begunSmall(_ sentence: Substring) -> String {
    let text = sentence.last == "." ? sentence.dropLast() : sentence
    // A word in capitals is a name, for example PATH.
    guard let first = text.first, text.dropFirst().first?.isLowercase == true else {
      return String(text)
    }
    return first.lowercased() + text.dropFirst()
  }
}
