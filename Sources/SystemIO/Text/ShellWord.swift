/// Quoting for a POSIX shell.
public enum ShellWord {
  /// Returns a word of any bytes. If some of them are not printable, it is quoted as `$'…'`, which
  /// POSIX has since 2024 and bash, ksh and zsh support.
  public static func text(_ word: ByteString) -> String {
    let shown = word.description
    if word == ByteString(shown) { return text(shown) }
    let escaped = word.bytes.map { byte in
      let isPlain = (0x20...0x7e).contains(byte) && !"\\'".utf8.contains(byte)
      return isPlain
        ? String(Unicode.Scalar(byte)) : (byte < 16 ? "\\x0" : "\\x") + String(byte, radix: 16)
    }
    return "$'" + escaped.joined() + "'"
  }

  /// Whether a word that another user chose can be shown as an argument of a command to paste: it
  /// is printable, so that nothing in it is hidden, and not an option.
  public static func isPlainArgument(_ word: ByteString) -> Bool {
    let shown = word.description
    return !shown.isEmpty && !shown.hasPrefix("-") && word == ByteString(shown)
  }

  /// Returns a word that another user chose, quoted as an argument of a command to paste, or nil if
  /// it cannot be shown as one.
  public static func argument(_ word: ByteString) -> String? {
    isPlainArgument(word) ? text(word) : nil
  }

  /// Returns a word, in single quotes if the shell would interpret it.
  public static func text(_ word: String) -> String {
    let isPlain = word.utf8.allSatisfy { byte in
      UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
        || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "/._-+=:,@".utf8.contains(byte)
    }
    if isPlain, !word.isEmpty { return word }
    let quoted = word.split(separator: "'", omittingEmptySubsequences: false)
    return "'" + quoted.joined(separator: "'\\''") + "'"
  }
}
