internal import SystemIO

/// The syntax check of sh(1). A crontab line with a syntax error would never run, without notice.
enum ShellSyntax {
  /// Refuses a text that the shell cannot parse. Accepts any text if there is no shell.
  ///
  /// - Parameter subject: the name of the text, for the message.
  static func require(_ text: String, of subject: String) throws(UsageError) {
    guard let ending = try? ChildProgram.run(["sh", "-n"], input: Array(text.utf8 + [0x0A])),
      ending.code != 0
    else { return }
    let said = String(decoding: ending.errors, as: UTF8.self).split(separator: "\n").first ?? ""
    throw UsageError(
      "the shell cannot parse \(subject): \(ByteString(String(said)))",
      hint: "try it with 'sh -n', and quote special characters")
  }
}

/// The lingering of this user's systemd after the last logout (loginctl(1), "enable-linger").
enum Lingering {
  /// Whether systemd is known to end with the last logout, and the timers with it.
  static var isOff: Bool {
    let words = ["loginctl", "show-user", "\(Host.userID)", "--property=Linger"]
    let ending = try? ChildProgram.run(words.map { ByteString($0) })
    return ending?.code == 0 && ending?.output == Array("Linger=no\n".utf8)
  }
}
