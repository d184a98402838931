internal import SystemIO

/// Words as a POSIX shell reads them.
enum ShellWord {
  /// A word of any bytes; where not all of them can be seen, in the quotes with escapes that POSIX has
  /// since 2024, and bash, ksh and zsh before.
  static func text(_ word: ByteString) -> String {
    let shown = word.description
    if word == ByteString(shown) { return text(shown) }
    let escaped = word.bytes.map { byte in
      let isPlain = (0x20...0x7e).contains(byte) && !"\\'".utf8.contains(byte)
      return isPlain
        ? String(Unicode.Scalar(byte)) : (byte < 16 ? "\\x0" : "\\x") + String(byte, radix: 16)
    }
    return "$'" + escaped.joined() + "'"
  }

  /// The word, in single quotes where the shell would take it for something else.
  static func text(_ word: String) -> String {
    let isPlain = word.utf8.allSatisfy { byte in
      UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
        || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "/._-+=:,@".utf8.contains(byte)
    }
    if isPlain, !word.isEmpty { return word }
    let quoted = word.split(separator: "'", omittingEmptySubsequences: false)
    return "'" + quoted.joined(separator: "'\\''") + "'"
  }
}
