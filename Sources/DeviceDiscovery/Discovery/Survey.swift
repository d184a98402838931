package import SandboxModel
package import SystemIO

/// The access to a device's files, with the findings collected on the way. Directories of the
/// layout are entered through links and on other file systems, with a note; files are read whole,
/// up to a size limit.
package struct Survey {
  /// The device's root, absolute and without links.
  let root: ByteString
  package private(set) var findings: [Finding] = []
  /// The directories already used as containers, by device and inode.
  private var taken: [FileIdentity: ByteString] = [:]

  /// The effective user ID of the process.
  private let user: UInt32

  package init(root: ByteString, user: UInt32 = Host.userID) {
    self.root = root
    self.user = user
  }

  package mutating func note(_ code: Finding.Code, at path: ByteString, because reason: String) {
    findings.append(Finding(.note, code, at: path, reason: reason))
  }

  package mutating func warn(_ code: Finding.Code, at path: ByteString, because reason: String) {
    findings.append(Finding(.warning, code, at: path, reason: reason))
  }
}

// MARK: - Directories

extension Survey {
  /// The entry at a location where the layout has a directory.
  enum Standing: ~Copyable {
    case folder(Directory)
    /// A directory, or a link to one, that exists but cannot be opened.
    case closed
    /// No entry, or one that is not a directory.
    case none
  }

  /// Opens a directory of the layout or a container's root, following a link in its place.
  ///
  /// - Parameter path: The path in findings, relative to the root.
  mutating func enter(
    _ name: ByteString, in parent: borrowing Directory, as path: ByteString
  ) -> Standing {
    do {
      guard let status = try parent.statusIfPresent(name) else { return .none }
      switch status.kind {
      case .directory:
        if status.isMountPoint {
          note(.mountEntered, at: path, because: "it is on another file system, which was entered")
        }
        return .folder(try parent.directory(name))
      case .symlink:
        if let owner = foreignOwner(of: status) {
          warn(
            .foreignLink, at: path,
            because:
              "it is a link owned by user \(owner); root does not follow links of other users")
          return .none
        }
        return try follow(name, in: parent, as: path)
      default:
        note(.orphan, at: path, because: "it is not a directory and is excluded")
        return .none
      }
    } catch {
      warn(.unreadable, at: path, because: "it cannot be opened: \(error.reason)")
      return .closed
    }
  }

  /// Returns the owner of a link that must not be followed: as root, the program would read or
  /// write where the link's owner has no access.
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
      let reason = error.isLink ? "which forms a loop" : "which does not exist"
      warn(.danglingLink, at: path, because: "it is a link to '\(target)', \(reason)")
      return .none
    }
    if root.isWithin(real) || parent.path.isWithin(real) {
      warn(
        .repeatedDirectory, at: path,
        because: "it is a link to '\(target)', which contains it or the device")
      return .none
    }
    guard try parent.statusFollowing(name).kind == .directory else {
      note(
        .orphan, at: path,
        because: "it is a link to '\(target)', which is not a directory, and is excluded")
      return .none
    }
    note(.linkFollowed, at: path, because: "it is a link to '\(target)' and was followed")
    return .folder(try Directory.open(path: real))
  }

  /// Opens a nested directory, with the rules of `enter` at each level.
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

  /// Returns the names in a directory, sorted; empty, with a warning, if it cannot be listed.
  mutating func names(in directory: borrowing Directory, as path: ByteString) -> [ByteString] {
    do {
      return try directory.names()
    } catch {
      warn(.unreadable, at: path, because: "it cannot be listed: \(error.reason)")
      return []
    }
  }

  /// Returns the kind of an entry without following links, or nil, with a warning if it cannot be
  /// determined.
  mutating func kind(
    of name: ByteString, in directory: borrowing Directory, as path: ByteString
  ) -> FileKind? {
    do {
      return try directory.statusIfPresent(name)?.kind
    } catch {
      warn(.unreadable, at: path, because: "its status cannot be read: \(error.reason)")
      return nil
    }
  }

  /// Registers a directory as a container. Returns false, with a warning, if another path already
  /// leads to it.
  mutating func take(_ directory: borrowing Directory, as path: ByteString) -> Bool {
    guard let identity = try? directory.status().identity else { return true }
    if let other = taken[identity] {
      warn(
        .repeatedDirectory, at: path,
        because: "it is the same directory as '\(other)' and is excluded")
      return false
    }
    taken[identity] = path
    return true
  }
}
