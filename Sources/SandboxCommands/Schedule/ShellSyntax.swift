internal import SystemIO

/// Whether sh(1) can parse a text: a crontab line with a syntax error would never run, and nobody
/// would know.
enum ShellSyntax {
  /// Refuses a text that the shell cannot parse; says nothing where there is no shell.
  ///
  /// - Parameter subject: what the text is, for the message.
  static func require(_ text: String, of subject: String) throws(UsageError) {
    guard let ending = try? ChildProgram.run(["sh", "-n"], input: Array(text.utf8 + [0x0A])),
      ending.code != 0
    else { return }
    let said = String(decoding: ending.errors, as: UTF8.self).split(separator: "\n").first ?? ""
    throw UsageError(
      "the shell cannot parse \(subject): \(ByteString(String(said)))",
      hint: "try it by 'sh -n', and quote what the shell takes for something else")
  }
}

/// Whether this user's systemd goes on after the last logout (loginctl(1), "enable-linger").
enum Lingering {
  /// Whether it is known to end then, and the timers with it.
  static var isOff: Bool {
    let words = ["loginctl", "show-user", "\(Host.userID)", "--property=Linger"]
    let ending = try? ChildProgram.run(words.map { ByteString($0) })
    return ending?.code == 0 && ending?.output == Array("Linger=no\n".utf8)
  }
}
