internal import SystemIO

extension LocalStorage {
  /// Converts a failed system call at a path. If this user lacks permission, the error names the
  /// owner of the file, or of the directory above that denies access, and the remedy.
  func failure(_ error: SystemError, at path: ObjectPath) -> StoreError {
    guard error.isRefused, let found = lastVisible(towards: path),
      let denial = AccessDenial(of: found.status, at: found.path, to: Host.userID)
    else { return failure(error) }
    return StoreError(
      .system, error.operation.rawValue, subject: error.path.description,
      reason: "\(error.reason): \(denial.words)", hint: hint(for: denial) ?? error.hint,
      cause: error)
  }

  /// A file or a directory on the way to an object, and its status.
  private struct Visible {
    let path: ByteString
    let status: FileStatus
  }

  /// Returns the last file or directory that this user can see. Further errors add nothing to the
  /// one that is explained.
  private func lastVisible(towards path: ObjectPath) -> Visible? {
    guard let status = try? root.status(), var directory = try? root.duplicate() else { return nil }
    var found = Visible(path: root.path, status: status)
    for name in path.components {
      guard let next = try? directory.statusIfPresent(name) else { return found }
      found = Visible(path: found.path.appending(name), status: next)
      guard next.kind == .directory, let below = try? directory.directory(name) else {
        return found
      }
      directory = below
    }
    return found
  }

  /// Returns the command that grants this user access, or nil if none can be shown.
  private func hint(for denial: AccessDenial) -> String? {
    guard let path = ShellWord.argument(root.path), let status = try? root.status() else {
      return nil
    }
    if denial.isOwnMode { return "change the mode: chmod -R u+rwX \(path)" }
    if status.user == Host.userID {
      return "change the owner to that of the repository: sudo chown -R --reference=\(path) \(path)"
    }
    return "run as \(AccessDenial.name(status.user)), who owns the repository, or change the "
      + "owner: sudo chown -R \(Host.userID) \(path)"
  }
}

/// The reason that a file's owner and mode deny access to a user.
struct AccessDenial: Hashable {
  /// Whether the user owns the file, and its mode denies the owner access.
  let isOwnMode: Bool
  /// The reason in words.
  let words: String

  /// Returns nil if the owner and the mode are not the reason, but for example a security module.
  init?(of status: FileStatus, at path: ByteString, to user: UInt32) {
    let subject = status.kind == .directory ? "the directory '\(path)'" : "it"
    let digits = String(status.permissions, radix: 8)
    let mode = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    isOwnMode = status.user == user
    guard isOwnMode else {
      words =
        "\(subject) belongs to \(Self.name(status.user)) (mode \(mode)), and this program runs as "
        + Self.name(user)
      return
    }
    let needed: UInt16 = status.kind == .directory ? 0o700 : 0o400
    guard status.permissions & needed != needed else { return nil }
    words = "\(subject) has the mode \(mode)"
  }

  /// Returns the name of a user, quoted, or the number if it has no name.
  static func name(_ user: UInt32) -> String {
    Host.userName(user).map { "'\(ByteString($0))'" } ?? "user \(user)"
  }
}
