internal import ArchiveStore
internal import SystemIO

/// Sets what an entry has besides its content, in the order in which one step does not undo another:
/// owner (which may clear set-user-id bits and capabilities), attributes with their ACLs, mode (which
/// the ACL's mask is part of), time. A step that fails is noted, and the next ones are taken.
struct EntryMetadata {
  let number: Int
  let entry: PlannedEntry
  /// The extended attributes with their values.
  let attributes: [(name: ByteString, value: [UInt8])]
  let findings: RestoreFindings

  /// The permissions to create a file with: its own, which saves setting them, unless it has
  /// attributes. `user.*` attributes are refused, even to the owner, on a file that is not writable.
  var initialPermissions: UInt16 { attributes.isEmpty ? entry.permissions & 0o777 : 0o600 }

  /// Sets the metadata of an open file that is new, or of a directory that has all its content. Owner
  /// and mode are left alone where they are right by themselves: as `fresh` has them.
  func set<Target: MetadataTarget & ~Copyable>(
    on target: borrowing Target, fresh: FileStatus? = nil
  ) {
    let ownerIsRight = fresh.map { $0.user == entry.owner && $0.group == entry.group } ?? false
    if !ownerIsRight {
      setOwner { user, group throws(SystemError) in try target.setOwner(user: user, group: group) }
    }
    if entry.isMerged { openForAttributes(on: target) }
    set(attributes, on: target.attributes)
    let modeIsRight =
      ownerIsRight && attributes.isEmpty
      && fresh.map { entry.permissions & ~$0.permissions == 0 } ?? false
    if !modeIsRight {
      let permissions = permissions { () throws(SystemError) in try target.status() }
      attempt { () throws(SystemError) in try target.setPermissions(permissions) }
    }
    attempt { () throws(SystemError) in try target.setModified(entry.modified) }
  }

  /// Sets the metadata of a link or a special file, which are not opened.
  func set(onChild name: ByteString, of directory: borrowing Directory) {
    setOwner { user, group throws(SystemError) in
      try directory.setOwner(user: user, group: group, of: name)
    }
    set(attributes, on: directory.attributes(of: name))
    if entry.kind != .symlink {
      let permissions = permissions { () throws(SystemError) in try directory.status(name) }
      attempt { () throws(SystemError) in try directory.setPermissions(permissions, of: name) }
    }
    attempt { () throws(SystemError) in try directory.setModified(entry.modified, of: name) }
  }

  /// Removes the attributes of what was there before that the entry has not.
  func removeOthers<Target: MetadataTarget & ~Copyable>(on target: borrowing Target) {
    let present = target.attributes
    attempt { () throws(SystemError) in
      for name in try present.names() where !AttributeNames.isOfHost(name) {
        if !attributes.contains(where: { $0.name == name }) { try present.remove(name) }
      }
    }
  }

  /// Makes a directory that was there writable for its owner, until it gets its mode.
  private func openForAttributes<Target: MetadataTarget & ~Copyable>(on target: borrowing Target) {
    guard !attributes.isEmpty, let mode = try? target.status().permissions, mode & 0o200 == 0
    else { return }
    try? target.setPermissions(mode | 0o200)
  }

  /// Only the superuser gives files away; others may choose among their groups.
  private func setOwner(_ step: (UInt32, UInt32) throws(SystemError) -> Void) {
    if Host.userID == 0 {
      return attempt { () throws(SystemError) in try step(entry.owner, entry.group) }
    }
    let isSet = entry.group == Host.groupID || (try? step(.max, entry.group)) != nil
    if entry.owner != Host.userID || !isSet { findings.countOwnerNotSet() }
  }

  /// The permissions that it gets, by whose it is now; what it does not get is noted.
  private func permissions(_ status: () throws(SystemError) -> FileStatus) -> UInt16 {
    if entry.permissions & SetIDBits.all == 0 { return entry.permissions }
    let kept =
      (try? status()).map { SetIDBits.kept(entry.permissions, entry.owner, entry.group, on: $0) }
      ?? entry.permissions & ~SetIDBits.all
    // Of a directory that is as it can be it was said before.
    if kept != entry.permissions, entry.action != .same {
      findings.remark(
        number, "it comes without set-user-id and set-group-id: it is another user's or group's")
    }
    return kept
  }

  /// Sets attributes, ACLs last: an ACL is a mode, too, under which others may be refused.
  private func set(
    _ attributes: [(name: ByteString, value: [UInt8])], on target: ExtendedAttributes
  ) {
    let lists = attributes.filter(\.name.isAccessList)
    for (name, value) in attributes.filter({ !$0.name.isAccessList }) + lists {
      attempt("attribute \(name): ") { () throws(SystemError) in try target.set(name, to: value) }
    }
  }

  private func attempt(
    _ what: @autoclosure () -> String = "", _ step: () throws(SystemError) -> Void
  ) {
    do throws(SystemError) {
      try step()
    } catch {
      findings.remark(number, what() + error.sentence)
    }
  }
}

extension SystemError {
  /// What was not done and why, without the path: "cannot set the mode: not permitted".
  fileprivate var sentence: String {
    let words = operation.rawValue.split(separator: " ").dropLast()
    return words.isEmpty ? reason : "cannot \(words.joined(separator: " ")): \(reason)"
  }
}
