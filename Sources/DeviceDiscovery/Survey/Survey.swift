package import Codecs
package import SandboxModel
package import SystemIO

/// The access to a device's files, with the findings collected on the way. Directories of the
/// layout are entered through links and on other file systems, with a note; files are read
/// completely, up to a size limit.
package struct Survey {
  /// The device's root, absolute and without links.
  let root: ByteString
  package private(set) var findings: [Finding] = []
  /// The directories already used as containers, by device and inode.
  private var claimed: [FileIdentity: ByteString] = [:]

  /// The effective user ID of the process.
  private let user: UInt32

  package init(root: ByteString, user: UInt32 = Host.userID) {
    self.root = root
    self.user = user
  }

  /// Begins a survey of a directory that was opened by a path; a link there is recorded.
  init(of directory: borrowing Directory, at path: ByteString) {
    self.init(root: directory.path)
    if root != path {
      record(.linkFollowed, at: path, because: "it is a link to '\(root)' and was followed")
    }
  }

  package mutating func record(_ code: Finding.Code, at path: ByteString, because reason: String) {
    findings.append(Finding(.note, code, at: path, reason: reason))
  }

  package mutating func warn(_ code: Finding.Code, at path: ByteString, because reason: String) {
    findings.append(Finding(.warning, code, at: path, reason: reason))
  }
}

// MARK: - Directories

extension Survey {
  /// The entry at a location where the layout has a directory.
  enum LayoutEntry: ~Copyable {
    case directory(Directory)
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
  ) -> LayoutEntry {
    do {
      guard let status = try parent.statusIfPresent(name) else { return .none }
      switch status.kind {
      case .directory:
        if status.isMountPoint {
          record(
            .mountEntered, at: path, because: "it is on another file system, which was entered")
        }
        return .directory(try parent.directory(name))
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
        record(.orphan, at: path, because: "it is not a directory and is excluded")
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
  ) throws(SystemError) -> LayoutEntry {
    let target = try parent.target(of: name)
    let real: ByteString
    do {
      switch try ForeignLink.resolve(parent.path.appending(name), for: user) {
      case .path(let resolved): real = resolved
      case .foreign(let link):
        warn(.foreignLink, at: path, because: "it is a link to '\(target)'; \(link.reason)")
        return .none
      }
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
      record(
        .orphan, at: path,
        because: "it is a link to '\(target)', which is not a directory, and is excluded")
      return .none
    }
    record(.linkFollowed, at: path, because: "it is a link to '\(target)' and was followed")
    return .directory(try Directory.open(resolved: real))
  }

  /// Opens a nested directory, with the rules of `enter` at each level.
  mutating func descend(
    _ names: [ByteString], from parent: borrowing Directory, as path: ByteString
  ) -> LayoutEntry {
    guard let first = names.first else { return .none }
    let here = path.appending(first)
    switch enter(first, in: parent, as: here) {
    case .directory(let directory):
      if names.count == 1 { return .directory(directory) }
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
  mutating func claim(_ directory: borrowing Directory, as path: ByteString) -> Bool {
    guard let identity = try? directory.status().identity else { return true }
    if let other = claimed[identity] {
      warn(
        .repeatedDirectory, at: path,
        because: "it is the same directory as '\(other)' and is excluded")
      return false
    }
    claimed[identity] = path
    return true
  }
}

// MARK: - Installations outside the device's root

extension Survey {
  /// Reads a text file in nested directories without following links, or returns nil if it does not
  /// exist.
  mutating func text(
    _ name: ByteString, _ directories: [ByteString], of parent: borrowing Directory,
    as path: ByteString
  ) -> [UInt8]? {
    if directories.isEmpty {
      return bytes(of: name, in: parent, as: path.appending(name), limit: Self.textLimit)
    }
    let here = directories.reduce(path) { $0.appending($1) }
    guard let directory = inner(directories, of: parent, as: path) else { return nil }
    return bytes(of: name, in: directory, as: here.appending(name), limit: Self.textLimit)
  }

  /// Returns the components of a link's target, or nil, with a warning unless it has the expected
  /// number of plain components.
  mutating func linked(
    _ name: ByteString, in directory: borrowing Directory, as path: ByteString, components: Int
  ) -> [ByteString]? {
    do {
      guard try directory.statusIfPresent(name) != nil else { return nil }
      let target = try directory.target(of: name)
      let parts = target.components
      if parts.count == components, !target.isAbsolute, !parts.contains("..") { return parts }
      warn(
        .wrongValue, at: path.appending(name),
        because: "it is a link to '\(target)', which is unexpected")
    } catch {
      warn(.unreadable, at: path.appending(name), because: "it cannot be read: \(error.reason)")
    }
    return nil
  }

  /// Opens a directory outside the root, following links in its path, or returns nil if it does not
  /// exist or is reached through a link that root does not follow.
  mutating func outside(_ path: ByteString) -> Directory? {
    do {
      switch try ForeignLink.resolve(path, for: user) {
      case .path(let real): return try Directory.open(resolved: real)
      case .foreign(let link):
        warn(.foreignLink, at: path, because: link.reason)
        return nil
      }
    } catch {
      if !error.isMissing {
        warn(.unreadable, at: path, because: "it cannot be opened: \(error.reason)")
      }
      return nil
    }
  }

  /// Opens a nested directory without following links, or returns nil if it does not exist.
  mutating func inner(
    _ names: [ByteString], of parent: borrowing Directory, as path: ByteString
  ) -> Directory? {
    do {
      guard let first = names.first, try parent.statusIfPresent(first)?.kind == .directory else {
        return nil
      }
      let directory = try parent.directory(first)
      if names.count == 1 { return directory }
      return inner(Array(names.dropFirst()), of: directory, as: path.appending(first))
    } catch {
      warn(.unreadable, at: path, because: "it cannot be opened: \(error.reason)")
      return nil
    }
  }
}

// MARK: - Files

extension Survey {
  /// The maximum size of a property list that describes an app or a container, in bytes.
  package static let propertyListLimit = 8 << 20
  /// The maximum size of one of Flatpak's text files, in bytes.
  static let textLimit = 1 << 20

  /// Reads a file of a directory, or returns nil if it is missing and, with a warning, if it cannot
  /// be read or exceeds `limit` bytes. Does not follow links.
  mutating func bytes(
    of name: ByteString, in directory: borrowing Directory, as path: ByteString, limit: Int
  ) -> [UInt8]? {
    do {
      guard let status = try directory.statusIfPresent(name) else { return nil }
      guard status.kind == .file else {
        warn(.unusableFile, at: path, because: "it is not a regular file and was not read")
        return nil
      }
      if let bytes = try directory.fileUntouched(name).readAll(limit: limit) { return bytes }
      warn(
        .unusableFile, at: path,
        because: "it has \(status.size) bytes, more than the limit of \(limit)")
    } catch {
      warn(.unusableFile, at: path, because: "it cannot be read: \(error.reason)")
    }
    return nil
  }

  /// Reads a property list, which must be a dictionary.
  mutating func dictionary(
    _ name: ByteString, in directory: borrowing Directory, as path: ByteString
  ) -> PropertyList? {
    guard
      let bytes = bytes(of: name, in: directory, as: path, limit: Self.propertyListLimit)
    else { return nil }
    if bytes.isEmpty {
      warn(.unusableFile, at: path, because: "it is empty, not a property list")
      return nil
    }
    return dictionary(bytes, as: path)
  }

  /// Parses a property list, which must be a dictionary.
  package mutating func dictionary(_ bytes: [UInt8], as path: ByteString) -> PropertyList? {
    do {
      let value = try PropertyList(reading: bytes, limits: .init(bytes: Self.propertyListLimit))
      if value.dictionaryValue != nil { return value }
      warn(
        .wrongValue, at: path,
        because: "it is a property list of the type \(value.kind), not a dictionary")
    } catch {
      let error = ModelError(reading: error)
      let position = error.location.map { " (\($0))" } ?? ""
      warn(
        .unusableFile, at: path,
        because: "it is not a usable property list\(position): \(error.reason)")
    }
    return nil
  }

  /// Returns a string member of a property list, or nil, with a warning if it has another type.
  mutating func string(
    _ key: String, of list: PropertyList, as path: ByteString
  ) -> ByteString? {
    guard let value = list[key] else { return nil }
    guard let text = value.stringValue else {
      warn(.wrongValue, at: path, because: "\(key) has the type \(value.kind), not string")
      return nil
    }
    return text.isEmpty ? nil : ByteString(text)
  }

  /// Returns a version: a string, or a number, which some builds write instead.
  private mutating func version(
    _ key: String, of list: PropertyList, as path: ByteString
  ) -> ByteString? {
    switch list[key] {
    case .integer(let number): ByteString("\(number)")
    case .unsigned(let number): ByteString("\(number)")
    case .real(let number): ByteString("\(number)")
    default: string(key, of: list, as: path)
    }
  }

  /// Returns an identifier member of a property list, or nil, with a warning if it is invalid.
  mutating func identifier(
    _ key: String, of list: PropertyList, as path: ByteString
  ) -> BundleIdentifier? {
    guard let text = string(key, of: list, as: path) else { return nil }
    guard let fault = BundleIdentifier.fault(of: text) else { return BundleIdentifier(text) }
    warn(
      .unusableName, at: path,
      because: "\(key) is '\(text)', which is not a valid identifier: \(fault)")
    return nil
  }

  /// Reads an Info.plist, or returns nil, with a warning if it is not usable.
  mutating func bundleInfo(in directory: borrowing Directory, as path: ByteString) -> BundleInfo? {
    let file = path.appending("Info.plist")
    guard (try? directory.statusIfPresent("Info.plist")) != .some(nil) else {
      warn(.unusableFile, at: file, because: "it is missing, so the bundle has no identifier")
      return nil
    }
    guard let list = dictionary("Info.plist", in: directory, as: file) else { return nil }
    return bundleInfo(of: list, as: file)
  }

  /// Returns the data in the dictionary of an Info.plist.
  package mutating func bundleInfo(of list: PropertyList, as file: ByteString) -> BundleInfo {
    let identifier = identifier("CFBundleIdentifier", of: list, as: file)
    if identifier == nil, list["CFBundleIdentifier"] == nil {
      warn(.wrongValue, at: file, because: "it has no CFBundleIdentifier")
    }
    return BundleInfo(
      identifier: identifier,
      displayName: string("CFBundleDisplayName", of: list, as: file)
        ?? string("CFBundleName", of: list, as: file),
      version: version("CFBundleShortVersionString", of: list, as: file),
      build: version("CFBundleVersion", of: list, as: file),
      executable: string("CFBundleExecutable", of: list, as: file))
  }
}
