internal import SystemIO

extension LocalStorage {
  /// The user and group that own what root creates in a repository.
  struct Owner: Sendable, Hashable {
    private let user: UInt32
    private let group: UInt32

    /// Returns the owner of a directory, or nil if this process creates its own files.
    init?(of root: borrowing Directory) throws(SystemError) {
      guard Host.userID == 0 else { return nil }
      let status = try root.status()
      guard status.user != 0 else { return nil }
      (user, group) = (status.user, status.group)
    }

    /// Gives a new directory to the owner. Some file systems have other owners, or none.
    func take(_ directory: borrowing Directory) throws(SystemError) {
      if try directory.status().user == 0 { try? directory.setOwner(user: user, group: group) }
    }

    /// Gives a file to the owner if it was just created: any other file could be another name of a
    /// file of root.
    func takeIfNew(_ file: borrowing Descriptor) throws(SystemError) {
      let status = try file.status()
      guard status.user == 0, status.links == 1, status.size == 0 else { return }
      try? file.setOwner(user: user, group: group)
    }
  }

  /// Creates a file at a path from the root.
  func create(_ path: ByteString) throws(SystemError) -> Descriptor {
    let file = try root.create(path, permissions: 0o600)
    try owner?.takeIfNew(file)
    return file
  }
}
