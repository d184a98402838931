public import ArgumentParser
public import SystemIO

/// A word of the command line, for a parser that knows nothing but texts.
///
/// A byte that is no part of UTF-8 becomes the scalar U+10FF00 + byte, which is for private use. Each of
/// the four bytes of such a scalar in the word becomes one, too, so that no two words get one text.
extension ByteString: ExpressibleByArgument {
  /// The word as a text for the parser.
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

  /// The word whose text the parser gives.
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

  /// Whether the bytes end with a text's.
  func hasSuffix(_ text: String) -> Bool { bytes.suffix(text.utf8.count).elementsEqual(text.utf8) }
}

extension String {
  /// Whether a text for the parser stands for bytes that are not in it as they are.
  var hasEscapedBytes: Bool { unicodeScalars.contains { $0.escapedByte != nil } }

  /// What the parser says of words, with their bytes as a person is shown them.
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

  /// The scalar that stands for a byte. The last of them is the last scalar that there is.
  fileprivate init(escaping byte: UInt8) {
    self = Unicode.Scalar(Self.firstEscape + UInt32(byte)) ?? "\u{FFFD}"
  }

  /// The byte that it stands for, nil for a scalar that stands for itself.
  fileprivate var escapedByte: UInt8? {
    value >= Self.firstEscape ? UInt8(value - Self.firstEscape) : nil
  }
}
