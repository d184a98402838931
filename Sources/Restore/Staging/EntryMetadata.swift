internal import ArchiveStore
internal import DeviceTransaction
internal import SystemIO

/// Sets an entry's metadata in an order in which no step undoes another: the owner (which may clear
/// set-user-ID bits and capabilities), the attributes with their ACLs, the mode (which includes the
/// ACL's mask), the time. A failed step is recorded, and the remaining steps continue.
struct EntryMetadata {
  /// The mode bits that run a program as its file's owner or group instead of as its user.
  ///
  /// They are restored only if the file's owner and group are the stored ones; otherwise a
  /// repository could make every user run its programs with the identity of the user who restores.
  enum SetIDBits {
    static let (user, group): (UInt16, UInt16) = (0o4000, 0o2000)
    static let all = user | group

    /// Returns an entry's permissions on a file with the owner and the group of the status. On a
    /// directory the set-group-ID bit only passes on the group.
    static func kept(
      _ permissions: UInt16, owner: UInt32, group: UInt32, on status: FileStatus
    ) -> UInt16 {
      let lost = (status.user == owner ? 0 : user) | (status.group == group ? 0 : Self.group)
      return permissions & ~(status.kind == .directory || lost == 0 ? lost : all)
    }
  }

  let number: Int
  let entry: PlannedTree.Entry
  /// The extended attributes with their values.
  let attributes: [(name: ByteString, value: [UInt8])]
  let findings: RestoreFindings

  /// The permissions to create a file with: its final ones, which saves a call, unless it has
  /// attributes. `user.*` attributes are refused on a file that is not writable, even for the
  /// owner.
  var initialPermissions: UInt16 { attributes.isEmpty ? entry.permissions & 0o777 : 0o600 }

  /// Sets the metadata of a new open file, or of a directory whose content is complete. The owner
  /// and the mode are not set if a new file, `fresh`, already has them.
  func set<Target: MetadataTarget & ~Copyable>(
    on target: borrowing Target, fresh: FileStatus? = nil
  ) {
    let ownerIsRight = fresh.map { $0.user == entry.owner && $0.group == entry.group } ?? false
    if !ownerIsRight {
      setOwner { user, group throws(SystemError) in try target.setOwner(user: user, group: group) }
    }
    if entry.isMerged { openForAttributes(on: target) }
    let isListed = set(attributes, on: target.attributes)
    let modeIsRight =
      ownerIsRight && attributes.isEmpty
      && fresh.map { entry.permissions & ~$0.permissions == 0 } ?? false
    var mode: UInt16? = entry.permissions
    if !modeIsRight {
      let permissions = permissions(isListed) { () throws(SystemError) in try target.status() }
      let isSet = attempt { () throws(SystemError) in try target.setPermissions(permissions) }
      mode = isSet ? permissions : nil
    }
    let hasTime = attempt { () throws(SystemError) in try target.setModified(entry.modified) }
    verify(mode, hasTime: hasTime) { () throws(SystemError) in try target.status() }
  }

  /// Sets the metadata of a symbolic link or a special file, which is not opened.
  func set(onChild name: ByteString, of directory: borrowing Directory) {
    setOwner { user, group throws(SystemError) in
      try directory.setOwner(user: user, group: group, of: name)
    }
    let isListed = set(attributes, on: directory.attributes(of: name))
    var mode: UInt16?
    if entry.kind != .symlink {
      let permissions = permissions(isListed) { () throws(SystemError) in
        try directory.status(name)
      }
      let isSet = attempt { () throws(SystemError) in
        try directory.setPermissions(permissions, of: name)
      }
      mode = isSet ? permissions : nil
    }
    let hasTime = attempt { () throws(SystemError) in
      try directory.setModified(entry.modified, of: name)
    }
    verify(mode, hasTime: hasTime) { () throws(SystemError) in try directory.status(name) }
  }

  /// Compares the metadata that was set with what the file system reports, if it is known to change
  /// some of it silently. What could not be set was recorded.
  private func verify(
    _ mode: UInt16?, hasTime: Bool, _ status: () throws(SystemError) -> FileStatus
  ) {
    guard findings.verifiesMetadata, let status = try? status() else { return }
    findings.countUnkept(
      mode: mode.map { $0 != status.permissions } ?? false,
      time: hasTime && status.modified != entry.modified)
  }

  /// Removes existing attributes that the entry does not have.
  func removeOthers<Target: MetadataTarget & ~Copyable>(on target: borrowing Target) {
    let present = target.attributes
    attempt { () throws(SystemError) in
      for name in try present.names() where !HostAttribute.isKept(name) {
        if !attributes.contains(where: { $0.name == name }) { try present.remove(name) }
      }
    }
  }

  /// Makes an existing directory writable for its owner until its mode is set.
  private func openForAttributes<Target: MetadataTarget & ~Copyable>(on target: borrowing Target) {
    guard !attributes.isEmpty, let mode = try? target.status().permissions, mode & 0o200 == 0
    else { return }
    try? target.setPermissions(mode | 0o200)
  }

  /// Sets the owner: only the superuser can change the user; others can choose among their groups.
  private func setOwner(_ step: (UInt32, UInt32) throws(SystemError) -> Void) {
    if Host.userID == 0 {
      attempt { () throws(SystemError) in try step(entry.owner, entry.group) }
      return
    }
    let isSet = entry.group == Host.groupID || (try? step(.max, entry.group)) != nil
    if entry.owner != Host.userID || !isSet { findings.countOwnerNotSet() }
  }

  /// Returns the permissions to set, depending on the present owner; bits that cannot be set are
  /// recorded.
  ///
  /// - Parameter isListed: Whether an access ACL of the entry is set.
  private func permissions(
    _ isListed: Bool, _ status: () throws(SystemError) -> FileStatus
  ) -> UInt16 {
    let permissions = isListed ? entry.permissions : permissionsWithoutList
    if permissions & SetIDBits.all == 0 { return permissions }
    let kept =
      (try? status()).map {
        SetIDBits.kept(permissions, owner: entry.owner, group: entry.group, on: $0)
      }
      ?? permissions & ~SetIDBits.all
    // For an unchanged directory, an earlier restore reported it.
    if kept != permissions, entry.action != .same {
      findings.remark(
        number, "its set-user-ID and set-group-ID bits are not set: another user or group owns it")
    }
    return kept
  }

  private static let accessList: ByteString = "system.posix_acl_access"

  /// The permissions of a file that cannot get its access ACL. With an ACL, the group bits are its
  /// mask: without it they would give the file's group the access of others in the ACL (acl(5)).
  private var permissionsWithoutList: UInt16 {
    let list = attributes.first { $0.name == Self.accessList }?.value ?? []
    // A version, then entries of a tag, permissions and an ID (linux/posix_acl_xattr.h).
    let entries = stride(from: 4, through: list.count - 8, by: 8)
    let ofGroup = entries.first { list[$0] == 0x04 && list[$0 + 1] == 0 }.map { list[$0 + 2] & 7 }
    return entry.permissions & (~0o070 | UInt16(ofGroup ?? 0) << 3)
  }

  /// Sets attributes, ACLs last, because an ACL changes the mode and may deny the remaining calls.
  /// A hash that the kernel refuses because it computes it itself is not a failure. Returns false
  /// if an access ACL cannot be set.
  private func set(
    _ attributes: [(name: ByteString, value: [UInt8])], on target: ExtendedAttributes
  ) -> Bool {
    var isListed = true
    let lists = attributes.filter(\.name.isAccessList)
    for (name, value) in attributes.filter({ !$0.name.isAccessList }) + lists {
      if HostAttribute.isBound(name, value) { continue }
      if HostAttribute.isComputed(name, value) {
        try? target.set(name, to: value)
        continue
      }
      do throws(SystemError) {
        try target.set(name, to: value)
      } catch {
        findings.remark(number, "attribute \(name): " + error.sentence)
        if name == Self.accessList { isListed = false }
      }
    }
    return isListed
  }

  /// Returns whether the step succeeded; a failure is recorded.
  @discardableResult
  private func attempt(_ step: () throws(SystemError) -> Void) -> Bool {
    do throws(SystemError) {
      try step()
      return true
    } catch {
      findings.remark(number, error.sentence)
      return false
    }
  }
}

extension SystemError {
  /// The failed action and the reason, without the path: "cannot set the mode: not permitted".
  fileprivate var sentence: String {
    let words = operation.rawValue.split(separator: " ").dropLast()
    return words.isEmpty ? reason : "cannot \(words.joined(separator: " ")): \(reason)"
  }
}
