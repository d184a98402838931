internal import ArchiveStore
internal import SystemIO

/// What could not be set of an entry that was made.
struct EntryRemarks {
  var ownerNotSet = false
  var failures: [String] = []

  /// Runs a step; its failure is noted, and the next steps are taken all the same.
  mutating func attempt(_ step: () throws(SystemError) -> Void) {
    do throws(SystemError) { try step() } catch { failures.append(error.description) }
  }

  /// Sets the owner where that is possible: only the superuser gives files away.
  mutating func setOwner(of entry: TreeEntry, _ step: () throws(SystemError) -> Void) {
    if Host.userID == 0 { attempt(step) } else { ownerNotSet = entry.owner != Host.userID }
  }
}

/// Metadata in the order in which one step does not undo another: owner (which may clear set-user-id
/// bits and capabilities), attributes with their ACLs, mode (which the ACL's mask is part of), time.
extension RepositoryReader {
  /// Sets the metadata of an open file, or of a folder that has all its content.
  func setMetadata<Target: MetadataTarget & ~Copyable>(
    of entry: TreeEntry, on target: borrowing Target
  ) -> EntryRemarks {
    var remarks = EntryRemarks()
    remarks.setOwner(of: entry) { () throws(SystemError) in
      try target.setOwner(user: entry.owner, group: entry.group)
    }
    setAttributes(of: entry, target.attributes, &remarks)
    remarks.attempt { () throws(SystemError) in try target.setPermissions(entry.permissions) }
    remarks.attempt { () throws(SystemError) in try target.setModified(entry.modified) }
    return remarks
  }

  /// Sets the metadata of a link or a special file, which are not opened.
  func setMetadata(
    of entry: TreeEntry, named name: ByteString, in folder: borrowing Folder
  ) -> EntryRemarks {
    var remarks = EntryRemarks()
    remarks.setOwner(of: entry) { () throws(SystemError) in
      try folder.setOwner(user: entry.owner, group: entry.group, of: name)
    }
    setAttributes(of: entry, folder.attributes(of: name), &remarks)
    if !entry.isLink {
      remarks.attempt { () throws(SystemError) in
        try folder.setPermissions(entry.permissions, of: name)
      }
    }
    remarks.attempt { () throws(SystemError) in try folder.setModified(entry.modified, of: name) }
    return remarks
  }

  private func setAttributes(
    of entry: TreeEntry, _ target: ExtendedAttributes, _ remarks: inout EntryRemarks
  ) {
    for attribute in entry.attributes {
      do {
        try target.set(attribute.name, to: try value(of: attribute))
      } catch {
        remarks.failures.append("attribute \(attribute.name): \(error)")
      }
    }
  }
}

extension TreeEntry {
  /// Whether the entry is a symbolic link.
  var isLink: Bool { if case .symlink = node { true } else { false } }
}
