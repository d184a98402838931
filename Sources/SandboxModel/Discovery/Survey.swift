internal import SystemIO

/// What a look at a device collects on its way, and how it looks: directories of the layout are entered
/// through links and onto other file systems, once and said; files are read whole and bounded.
struct Survey {
  /// The device's root, absolute and without links.
  let root: ByteString
  private(set) var findings: [Finding] = []
  /// Directories taken as containers already, by device and inode.
  private var taken: [FileIdentity: ByteString] = [:]

  /// The user whose rights the program has.
  private let user: UInt32

  init(root: ByteString, user: UInt32 = Host.userID) {
    self.root = root
    self.user = user
  }

  mutating func note(_ code: Finding.Code, _ path: ByteString, _ reason: String) {
    findings.append(Finding(.note, code, path, reason))
  }

  mutating func warn(_ code: Finding.Code, _ path: ByteString, _ reason: String) {
    findings.append(Finding(.warning, code, path, reason))
  }
}

// MARK: - Directories

extension Survey {
  /// What stands under a name where the layout has a directory.
  enum Standing: ~Copyable {
    case folder(Directory)
    /// A directory or a link to one that cannot be opened: it is there, and nobody can look.
    case closed
    /// Nothing, or nothing that is a directory.
    case none
  }

  /// Opens a directory of the layout or a container's root, following a link in its place.
  ///
  /// - Parameter path: what findings call it, relative to the root.
  mutating func enter(
    _ name: ByteString, in parent: borrowing Directory, as path: ByteString
  ) -> Standing {
    do {
      guard let status = try parent.statusIfPresent(name) else { return .none }
      switch status.kind {
      case .directory:
        if status.isMountPoint {
          note(.mountEntered, path, "it is on another file system, which is entered")
        }
        return .folder(try parent.directory(name))
      case .symlink:
        if let owner = foreignOwner(of: status) {
          warn(
            .foreignLink, path,
            "it is a link that belongs to user \(owner): root does not follow the links of others")
          return .none
        }
        return try follow(name, in: parent, as: path)
      default:
        note(.stray, path, "it is no directory, and is left out")
        return .none
      }
    } catch {
      warn(.unreadable, path, "it cannot be opened: \(error.reason)")
      return .closed
    }
  }

  /// The owner of a link that is not followed: root would read, or write, where the user who made the
  /// link cannot.
  private func foreignOwner(of link: FileStatus) -> UInt32? {
    user == 0 && link.user != 0 ? link.user : nil
  }

  private mutating func follow(
    _ name: ByteString, in parent: borrowing Directory, as path: ByteString
  ) throws(SystemError) -> Standing {
    let target = try parent.target(of: name)
    let real: ByteString
    do {
      real = try Host.realPath(parent.path.appending(name))
    } catch {
      guard error.isMissing || error.isLink else { throw error }
      let reason = error.isLink ? "which leads in a circle" : "which does not exist"
      warn(.danglingLink, path, "it is a link to '\(target)', \(reason)")
      return .none
    }
    if root.isWithin(real) || parent.path.isWithin(real) {
      warn(.repeatedDirectory, path, "it is a link to '\(target)', which holds it or the device")
      return .none
    }
    guard try parent.statusFollowing(name).kind == .directory else {
      note(.stray, path, "it is a link to '\(target)', which is no directory, and is left out")
      return .none
    }
    note(.linkFollowed, path, "it is a link to '\(target)', which is followed")
    return .folder(try Directory.open(path: real))
  }

  /// Opens a directory some levels down, each as `enter` does.
  mutating func descend(
    _ names: [ByteString], from parent: borrowing Directory, as path: ByteString
  ) -> Standing {
    guard let first = names.first else { return .none }
    let here = path.appending(first)
    switch enter(first, in: parent, as: here) {
    case .folder(let directory):
      if names.count == 1 { return .folder(directory) }
      return descend(Array(names.dropFirst()), from: directory, as: here)
    case .closed: return .closed
    case .none: return .none
    }
  }

  /// The names in a directory, sorted; none, with a warning, when it cannot be listed.
  mutating func names(in directory: borrowing Directory, as path: ByteString) -> [ByteString] {
    do {
      return try directory.names()
    } catch {
      warn(.unreadable, path, "it cannot be listed: \(error.reason)")
      return []
    }
  }

  /// What kind of thing a name is, a link's own; nil, with a warning, when it cannot be looked at.
  mutating func kind(
    of name: ByteString, in directory: borrowing Directory, as path: ByteString
  ) -> FileKind? {
    do {
      return try directory.statusIfPresent(name)?.kind
    } catch {
      warn(.unreadable, path, "it cannot be looked at: \(error.reason)")
      return nil
    }
  }

  /// Takes a directory as a container; false, with a warning, when it is one already by another path.
  mutating func take(_ directory: borrowing Directory, as path: ByteString) -> Bool {
    guard let identity = try? directory.status().identity else { return true }
    if let other = taken[identity] {
      warn(.repeatedDirectory, path, "it is the same directory as '\(other)', and is left out")
      return false
    }
    taken[identity] = path
    return true
  }
}
