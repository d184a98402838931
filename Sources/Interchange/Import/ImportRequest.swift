package import ArchiveStore
package import SystemIO

/// The options of an import.
package struct ImportRequest: Sendable {
  package var placement: Placement
  package var time: SnapshotTime = .ofSource
  package var tags: [String] = []
  /// The host that made the source; nil for this one.
  package var host: String?
  /// The position among the snapshots of the source; nil for the one after the last. An import of a
  /// state older than the last one has to come before it.
  package var sequence: UInt64?
  /// The name of the user who made the source; nil for the current one.
  package var user: String?
  /// The name and version of this program.
  package var program: String
  /// This host's copies of the index; nil for none.
  package var indexCache: IndexCache?
  /// This host's cache of snapshot heads; nil for none.
  package var headCache: SnapshotHeadCache?
  /// This host's record of the source's contents; nil if none is kept: everything is read then.
  package var contents: RecordedContents?
  /// Whether a source without entries becomes an empty snapshot, as one of several states; it is an
  /// error otherwise.
  package var allowsNothing = false
  /// The number of threads that compress, each of which takes up to 15 MB.
  package var workers = min(4, Host.processors)
  package var counters = ProgressCounters()
  /// Called often; the import ends with `interrupted` once it returns true.
  package var isStopping: @Sendable () -> Bool = { false }

  /// Creates a request.
  package init(_ placement: Placement, program: String) {
    self.placement = placement
    self.program = program
  }

  /// The location of this host's record of the contents of a source's last import.
  package struct RecordedContents: Sendable {
    /// The directory of the repository's files on this host.
    package var directory: ByteString
    /// Whether to read all contents, including unchanged ones.
    package var isReread: Bool

    /// Creates a location.
    package init(in directory: ByteString, isReread: Bool = false) {
      (self.directory, self.isReread) = (directory, isReread)
    }
  }

  /// The time of the snapshot.
  package enum SnapshotTime: Hashable, Sendable {
    /// That of the source if it has one, otherwise the current time.
    case ofSource
    case now
    case at(Timestamp)
  }

  /// The location of the entries in the snapshot, and its description.
  package struct Placement: Sendable {
    /// The logical path of the source's root: `folders/photos`; empty if the paths of the source
    /// are logical paths themselves.
    package var prefix: ByteString
    /// The device that the snapshot describes. Its identity is that of the source: imports of
    /// successive states have the same.
    package var device: DeviceRecord
    package var apps: [AppRecord]
    package var policy: PolicyRecord
    /// The data classes by path, in tree order.
    package var classes: [ClassRun]

    /// Creates a placement.
    package init(
      prefix: ByteString, device: DeviceRecord, apps: [AppRecord] = [],
      policy: PolicyRecord = .ofImports, classes: [ClassRun]
    ) {
      self.prefix = prefix
      self.device = device
      self.apps = apps
      self.policy = policy
      self.classes = classes
    }
  }
}

extension ImportRequest.Placement {
  /// The placement of an archive as a directory of its own, all of it user data.
  ///
  /// - Parameters:
  ///   - component: the name of the directory as a component of a logical path (`LogicalName`).
  ///   - location: the absolute path of the archive, for messages and listings.
  package static func directory(_ component: ByteString, from location: ByteString) -> Self {
    let prefix = ByteString("folders").appending(component)
    return Self(
      prefix: prefix,
      device: DeviceRecord(
        identity: "import:\(component)", platform: "folder", layout: "folder", root: location,
        containers: [DeviceRecord.Container(path: prefix, realPath: location)]),
      classes: [ClassRun(path: prefix, name: "user-data")])
  }
}

/// The result of an import.
package struct ImportReport: Sendable {
  /// The new snapshot.
  package var snapshot: StoredSnapshot
  package var statistics: WritingSession.Statistics
  /// The number of files that are unchanged since the last import and were not read.
  package var unchanged = 0
  /// The entries that were not imported, and the properties that were dropped.
  package var skipped: SkippedEntries
  /// The error that ended the reading early, or that was found at its end; everything before it is
  /// in the snapshot.
  package var damage: InterchangeError?
  /// The problems with the index that did not prevent the import.
  package var remarks: [StoreError]

  /// Whether everything in the source is in the snapshot.
  package var isComplete: Bool { damage == nil && skipped.entryCount == 0 }
}
