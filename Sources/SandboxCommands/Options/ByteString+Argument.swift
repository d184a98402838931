internal import ArgumentParser
package import SystemIO

/// An argument as text, for a parser that handles only strings.
///
/// A byte that is not part of valid UTF-8 is escaped as the private-use scalar U+10FF00 + byte. So
/// is each of the four bytes of such a scalar in the argument, which makes the escaped text
/// unambiguous.
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
  package init(argument: String) {
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

  /// Whether the bytes end with those of a text.
  func hasSuffix(_ text: String) -> Bool { bytes.suffix(text.utf8.count).elementsEqual(text.utf8) }
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
