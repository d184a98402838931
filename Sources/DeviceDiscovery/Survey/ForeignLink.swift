internal import SandboxModel
internal import SystemIO

/// Another user's link in a path. Root does not follow it: the program would read or write where
/// the link's owner has no access.
struct ForeignLink: Equatable {
  let path: ByteString
  let owner: UInt32

  /// A clause for messages.
  var reason: String {
    "'\(path)' is a link of user \(owner); root does not follow links of other users"
  }

  static let hint = "run the command as the owner of the device"

  /// A path without links, or the link at which resolving it ended.
  enum Resolution: Equatable {
    case path(ByteString)
    case foreign(ForeignLink)
  }

  /// The number of links that the kernel follows in one path.
  private static let linkLimit = 40

  /// Called with each path after its resolution, for tests that change the path at that moment.
  @TaskLocal static var didResolve: @Sendable (ByteString) -> Void = { _ in }

  /// Resolves the links of a path that `user` follows. The result must be used unchanged and opened
  /// with `Directory.open(resolved:)`: resolving the path again would follow a link that was added
  /// since.
  ///
  /// - Parameter allowsMissing: whether the last components may be missing; they are appended.
  /// - Throws: an error if another entry of the path does not exist or cannot be examined, and
  ///   `ELOOP` for too many links.
  static func resolve(
    _ path: ByteString, for user: UInt32 = Host.userID, allowsMissing: Bool = false
  ) throws(SystemError) -> Resolution {
    let found = try search(path, for: user, allowsMissing: allowsMissing)
    didResolve(path)
    return found
  }

  private static func search(
    _ path: ByteString, for user: UInt32, allowsMissing: Bool
  ) throws(SystemError) -> Resolution {
    guard user == 0 else {
      return .path(allowsMissing ? Host.resolved(path) : try Host.realPath(path))
    }
    let root = try Directory.open(path: "/")
    var (above, links): (ByteString, Int) = ("", 0)
    let start = path.isAbsolute ? path : (Host.workingDirectory() ?? "").appending(path)
    var rest = Array(start.components.reversed())
    while let name = rest.popLast() {
      if name == "." { continue }
      if name == ".." {
        above = above.parent
        continue
      }
      let here = above.appending(name)
      let status: FileStatus
      do throws(SystemError) {
        status = try root.status(here)
      } catch {
        guard allowsMissing, error.isMissing, !rest.contains("..") else { throw error }
        let names = rest.reversed().filter { $0 != "." }
        return .path(names.reduce(ByteString("/").appending(here)) { $0.appending($1) })
      }
      guard status.kind == .symlink else {
        above = here
        continue
      }
      if status.user != user {
        return .foreign(ForeignLink(path: ByteString("/").appending(here), owner: status.user))
      }
      links += 1
      if links > linkLimit { throw SystemError.loop(path) }
      let target = try root.target(of: here)
      if target.isAbsolute { above = "" }
      rest += target.components.reversed()
    }
    return .path(ByteString("/").appending(above))
  }
}

extension ModelError {
  /// The directory of a device is reached through a link that root does not follow.
  static func foreignLink(_ link: ForeignLink, in path: ByteString) -> ModelError {
    ModelError(
      .noDevice, "find a device in", on: path, reason: link.reason, hint: ForeignLink.hint)
  }
}

extension Directory {
  /// Opens a directory of the layout below a home directory, following links except those that root
  /// does not follow.
  ///
  /// - Throws: `noDevice` for such a link, and `SystemError`.
  static func open(inHome path: ByteString) throws -> Directory {
    switch try ForeignLink.resolve(path) {
    case .path(let real): return try Directory.open(resolved: real)
    case .foreign(let link): throw ModelError.foreignLink(link, in: path)
    }
  }
}
