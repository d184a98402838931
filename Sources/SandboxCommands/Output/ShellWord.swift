internal import SystemIO

/// Words as a POSIX shell reads them.
enum ShellWord {
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
