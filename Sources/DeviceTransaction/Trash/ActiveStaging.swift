internal import ArchiveStore
internal import Codecs
package import SystemIO

/// The part of a directory that a run with a staging directory in it changes. Its name shows it.
package enum StagedWork: Sendable {
  /// Entries that the locks of a device cover.
  case locked
  /// Existing directories at any depth.
  case merge
  /// The entry of this name, and the files that belong to it.
  case entry(ByteString)

  /// The part of the name after the prefix of all.
  var tag: [UInt8] {
    switch self {
    case .locked: return []
    case .merge: return Array("into-".utf8)
    case .entry(let name):
      return Array("of-\(Blake2b.hash(Array(name.bytes)).hex.prefix(8))-".utf8)
    }
  }
}

/// A staging directory whose run is in progress.
package struct ActiveStaging: Sendable {
  /// The directory that the run works in.
  package let directory: ByteString
  /// The process of the run, as text to append to a message; empty if it is not known.
  package let holder: String

  /// Returns a staging directory in a directory, or nil if none is in use.
  ///
  /// A run that locks its own directory first and then looks for those of others finds each run
  /// that did the same before. Directories of other users, which cannot be read, and those on a
  /// volume without locks are not found.
  ///
  /// - Parameters:
  ///   - own: the name of the caller's own, if it has one there.
  ///   - works: the kinds of work that count; empty for all.
  package static func find(
    in parent: borrowing Directory, besides own: ByteString? = nil, for works: [StagedWork] = []
  ) -> ActiveStaging? {
    let names = (try? parent.names())?.filter { name in
      StagingDirectory.isAny(name) && name != own
        && (works.isEmpty || works.contains { StagingDirectory.isAny(name, for: $0) })
    }
    guard let names, !names.isEmpty, let owner = try? parent.status().user else { return nil }
    for name in names {
      // Otherwise any user could block each restore below a directory that all users can change.
      guard let directory = try? parent.directory(name), let user = try? directory.status().user,
        [owner, Host.userID, 0].contains(user),
        (try? FileLock.isHeld(StagingDirectory.lockName, in: directory)) == true
      else { continue }
      return ActiveStaging(
        directory: parent.path,
        holder: LockHolder.words(of: StagingDirectory.lockName, in: directory))
    }
    return nil
  }
}
