package import SystemIO

/// A backup program that is run to import its snapshots.
///
/// Tested with restic 0.14 and borg 1.2; kopia's interface is that of its version 0.17
/// (`cli/command_snapshot_list.go`, `cli/command_restore.go`).
package enum PeerKind: String, Sendable, CaseIterable {
  case restic
  case borg
  case kopia
}

/// The repository of another backup program, and the program.
package struct Peer: Sendable {
  package let kind: PeerKind
  /// The name or path of the program.
  package let program: ByteString
  /// The repository as the program names it; for kopia, the configuration file of the connected
  /// repository, or nil for the default one.
  package let location: ByteString?

  /// Creates a peer; the default program is the one in `PATH` with the kind's name.
  package init(_ kind: PeerKind, at location: ByteString?, program: ByteString? = nil) {
    self.kind = kind
    self.location = location
    self.program = program ?? ByteString(kind.rawValue)
  }

  /// The repository for messages and snapshots: without a user and a password in a URL, absolute if
  /// it is a directory.
  package var shownLocation: ByteString {
    guard let location else { return ByteString("\(kind.rawValue) repository") }
    let bytes = Array(location.bytes)
    guard let mark = Self.firstIndex(of: Array("://".utf8), in: bytes) else {
      // A directory, or for borg `user@host:path`, which has no password.
      let isDirectory = (try? Directory.open(path: location)) != nil
      return isDirectory ? Host.resolved(location) : location
    }
    let start = mark + 3
    let authority = bytes[start...].prefix { $0 != ByteString.slash }
    guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else { return location }
    return ByteString(Array(bytes[..<start]) + Array(bytes[(at + 1)...]))
  }

  private static func firstIndex(of text: [UInt8], in bytes: [UInt8]) -> Int? {
    guard bytes.count >= text.count else { return nil }
    return (0...(bytes.count - text.count)).first { bytes[$0...].starts(with: text) }
  }
}

// MARK: - Command lines

extension Peer {
  /// The variables of the program's environment that its output depends on.
  var environment: [(name: String, value: String)] {
    // borg prints local times without an offset.
    kind == .borg ? [("TZ", "UTC")] : []
  }

  /// The command that lists the snapshots as JSON.
  var listWords: [ByteString] {
    let repository = location ?? ""
    switch kind {
    case .restic: return [program, repositoryOption, "snapshots", "--json"]
    case .borg:
      let format: ByteString = "{hostname}{username}"
      return [program, "list", "--json", "--format", format, "--", repository]
    case .kopia: return [program] + configuration + ["snapshot", "list", "--all", "--json"]
    }
  }

  /// Returns the command that writes a snapshot as a tar archive to its standard output.
  func archiveWords(of snapshot: PeerSnapshot) -> [ByteString] {
    let id = ByteString(snapshot.id)
    switch kind {
    case .restic: return [program, repositoryOption, "dump", "--archive", "tar", id, "/"]
    case .borg: return [program, "export-tar", "--", borgArchive(snapshot), "-"]
    case .kopia:
      return [program] + configuration + ["restore", "--mode=tar", id, "/dev/stdout"]
    }
  }

  /// Returns the command that lists the entries of a snapshot in the order of its archive, as JSON
  /// by lines, or nil if the program has none.
  func entryWords(of snapshot: PeerSnapshot) -> [ByteString]? {
    switch kind {
    case .restic: return [program, repositoryOption, "ls", "--json", ByteString(snapshot.id)]
    case .borg:
      let format: ByteString = "{path}{isomtime}{healthy}"
      return [program, "list", "--json-lines", "--format", format, "--", borgArchive(snapshot)]
    case .kopia: return nil
    }
  }

  /// The option in one word: a location that begins with '-' is not taken as an option.
  private var repositoryOption: ByteString {
    ByteString(Array("--repo=".utf8) + (location ?? "").bytes)
  }

  private var configuration: [ByteString] {
    guard let location else { return [] }
    return [ByteString(Array("--config-file=".utf8) + location.bytes)]
  }

  /// The archive in borg's form REPOSITORY::NAME. In a name, braces are placeholders unless
  /// doubled.
  private func borgArchive(_ snapshot: PeerSnapshot) -> ByteString {
    var name: [UInt8] = []
    for byte in snapshot.name.utf8 {
      name.append(byte)
      if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "}") { name.append(byte) }
    }
    return ByteString((location ?? "").bytes + Array("::".utf8) + name)
  }
}

// MARK: - Messages

extension Peer {
  /// The environment variables with which the program finds its password, for hints.
  private var passwordVariables: String {
    switch kind {
    case .restic: "RESTIC_PASSWORD_FILE or RESTIC_PASSWORD_COMMAND"
    case .borg: "BORG_PASSCOMMAND or BORG_PASSPHRASE"
    case .kopia: "KOPIA_PASSWORD"
    }
  }

  /// The error of a program that ended with a status other than 0.
  ///
  /// Only restic since version 0.17 has a status of its own for a wrong password (12); otherwise
  /// the message says so.
  func failure(_ action: String, of program: RunningProgram, code: Int) -> InterchangeError {
    let lines = program.lastErrorLines(20).filter { !isNoise($0) }.suffix(3).map(\.description)
    let messages = lines.isEmpty ? "" : ": " + lines.joined(separator: "; ")
    let reason = "\(kind.rawValue) ended with status \(code)\(messages)"
    let text = lines.joined(separator: " ").lowercased()
    let isWrong =
      code == 12 && kind == .restic
      || Self.signsOfWrongPassword.contains { text.contains($0) }
    let needsPassword = Self.signsOfNoPassword.contains { text.contains($0) }
    let hint = "the password is set with \(passwordVariables) in the environment"
    if isWrong {
      return InterchangeError(.wrongKey, action, subject: shownLocation, reason: reason, hint: hint)
    }
    if needsPassword {
      return InterchangeError(
        .keyRequired, action, subject: shownLocation, reason: reason, hint: hint)
    }
    return InterchangeError(.programFailed, action, subject: shownLocation, reason: reason)
  }

  /// Whether a line of borg's says nothing about its failure: a line of a traceback, or one about
  /// the system after it.
  private func isNoise(_ line: ByteString) -> Bool {
    kind == .borg && Self.noise.contains { line.bytes.starts(with: $0.utf8) }
  }

  private static let noise = [
    " ", "Traceback ", "Platform: ", "Linux: ", "Borg: ", "PID: ", "sys.argv: ",
    "SSH_ORIGINAL_COMMAND: ",
  ]

  private static let signsOfWrongPassword = [
    "wrong password", "is incorrect", "invalid repository password", "invalid password",
  ]
  private static let signsOfNoPassword = [
    "an empty password is not a password", "can not acquire a passphrase",
    "unable to get password", "please specify password",
  ]
}
