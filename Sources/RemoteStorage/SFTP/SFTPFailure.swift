internal import SystemIO

/// The failure of a request.
enum SFTPFailure: Error, Hashable, Sendable {
  /// The server refused or failed to do it.
  case refused(SFTPStatus)
  /// A part of the path is missing, or of the wrong kind: found before the request was made.
  case unusable(SystemError)
  /// The connection ended. Whether the server carried out the last request is unknown.
  case lost(SFTPEnding)
  /// The connection cannot be made, or the server violates the protocol: another attempt would
  /// fail, too.
  case impossible(SFTPEnding)
  /// A stop was requested while there was no connection.
  case interrupted(SFTPEnding)

  init(_ violation: SFTPViolation) {
    self = .impossible(SFTPEnding(.violation, reason: violation.reason))
  }

  /// The server's status code, if it answered.
  var code: SFTPStatus.Code? { if case .refused(let status) = self { status.code } else { nil } }

  /// Whether a path does not exist.
  var isMissing: Bool {
    if case .unusable(let error) = self { error.isMissing } else { code == .noSuchFile }
  }

  /// Whether another connection may succeed.
  var isLost: Bool { if case .lost = self { true } else { false } }
}

/// The reason why a connection ended or was not made.
struct SFTPEnding: Hashable, Sendable {
  let kind: Kind
  /// The reason, in one line.
  let reason: String
  /// The last lines that ssh printed, with control characters escaped.
  let lines: [String]

  init(_ kind: Kind, reason: String, lines: [String] = []) {
    (self.kind, self.reason, self.lines) = (kind, reason, lines)
  }

  /// The reasons that have a hint of their own.
  enum Kind: Hashable, Sendable {
    /// The server's key differs from the known one.
    case hostKeyChanged
    /// The server's key is not known, or could not be verified.
    case hostKeyUnknown
    /// The server accepts no key of the user.
    case loginRefused
    /// The name of the host cannot be resolved.
    case unknownHost
    /// The server has no SFTP, or the user's shell prevents it.
    case noSubsystem
    /// The program cannot be started, or refuses its options.
    case noProgram
    /// The server violates the protocol.
    case violation
    /// The server does not answer, or the connection was interrupted.
    case unreachable
  }

  /// The number and length of ssh's lines that are kept.
  static let lineCount = 4
  static let lineLength = 300

  /// The reason with ssh's own lines.
  var description: String {
    lines.isEmpty ? reason : reason + " (" + lines.joined(separator: "; ") + ")"
  }
}

extension SFTPEnding {
  /// The end of a program that connects, from what it printed last.
  ///
  /// The texts are those of OpenSSH 7 to 10, which are not translated.
  ///
  /// - Parameters:
  ///   - lines: the last lines of standard error.
  ///   - code: the exit status, if the program ended.
  ///   - wasConnected: whether the server had answered before.
  init(lines: [ByteString], code: Int?, wasConnected: Bool) {
    let text = lines.map { String(decoding: $0.bytes, as: UTF8.self) }.joined(separator: "\n")
    let found = Self.kinds.first { phrase, _ in text.contains(phrase) }?.1
    let kind = found ?? (code == 127 ? .noProgram : .unreachable)
    let shown = lines.suffix(Self.lineCount).map { line in
      ByteString(line.bytes.prefix(Self.lineLength)).description
    }
    self.init(kind, reason: Self.reason(kind, code, wasConnected: wasConnected), lines: shown)
  }

  /// Phrases of ssh, the more specific ones first.
  private static let kinds: [(String, Kind)] = [
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", .hostKeyChanged),
    ("host key for", .hostKeyChanged),
    ("Host key verification failed", .hostKeyUnknown),
    ("No ED25519 host key is known", .hostKeyUnknown),
    ("Permission denied (", .loginRefused),
    ("Too many authentication failures", .loginRefused),
    ("Could not resolve hostname", .unknownHost),
    ("subsystem request failed", .noSubsystem),
    ("Bad configuration option", .noProgram),
    ("unknown option", .noProgram),
    ("command-line: line", .noProgram),
  ]

  private static func reason(_ kind: Kind, _ code: Int?, wasConnected: Bool) -> String {
    switch kind {
    case .hostKeyChanged: return "the host key of the server has changed"
    case .hostKeyUnknown: return "the host key of the server is not known"
    case .loginRefused: return "the server refused the login"
    case .unknownHost: return "the host name cannot be resolved"
    case .noSubsystem: return "the server offers no SFTP"
    case .noProgram: return "ssh cannot be run as configured"
    case .violation, .unreachable:
      if wasConnected { return "the connection to the server was lost" }
      return code.map { "ssh ended with exit status \($0)" } ?? "the server did not answer"
    }
  }

  /// Whether another attempt would fail as well, although a connection was made before. A name that
  /// was resolved before, and a server that answered before, may be reachable again.
  var isPermanent: Bool {
    switch kind {
    case .hostKeyChanged, .hostKeyUnknown, .loginRefused, .noSubsystem, .noProgram, .violation: true
    case .unknownHost, .unreachable: false
    }
  }

  /// The suggested next step.
  var hint: String {
    switch kind {
    case .hostKeyChanged:
      "if the server's administrator confirms the new key, remove the old one with 'ssh-keygen -R'"
    case .hostKeyUnknown:
      "connect once with 'ssh' by hand, and compare the key's fingerprint with the server's"
    case .loginRefused:
      "add a key that the server accepts to ssh-agent, or name it in ~/.ssh/config; passwords are not"
        + " asked for"
    case .unknownHost: "check the host name, and the 'Host' entries of ~/.ssh/config"
    case .noSubsystem: "enable 'Subsystem sftp' in the server's sshd_config"
    case .noProgram: "install the OpenSSH client, or name another program with '--ssh-command'"
    case .violation:
      "check with 'sftp' by hand; the user's shell on the server must not print anything for"
        + " commands"
    case .unreachable: "check with 'ssh' by hand that the server can be reached, and run it again"
    }
  }
}
