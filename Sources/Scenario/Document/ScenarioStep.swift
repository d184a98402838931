package import PolicyEngine
package import SandboxModel
package import SystemIO

/// A step of a scenario.
package struct ScenarioStep: Sendable, Hashable {
  /// The action.
  package let action: ScenarioAction
  /// The versions of the platform to which the step applies; for others it is skipped.
  package let versions: OSVersion.Range
  /// The code of the error with which the step has to fail, or nil if it has to succeed.
  package let failure: ErrorCode?
  /// The position in the file.
  package let location: PolicyLocation
}

/// The action of a step.
package indirect enum ScenarioAction: Sendable, Hashable {
  /// Another app or device passes a file to the app, into its `Documents/Inbox`.
  case deliver(Delivery)
  /// The app writes a file; missing directories are created.
  case write(Writing)
  /// The app removes a file, or a directory with its content.
  case remove(LogicalPath)
  /// The app sets or removes an exclusion mark.
  case mark(Marking)
  /// A backup of the device.
  case backup(Backup)
  /// An update of an app.
  case update(Update)
  /// A rollback of an app's last update.
  case rollback(Rollback)
  /// A purge of the device.
  case purge(Purge)
  /// The removal of an app's bundle, without its data.
  case offload(app: ByteString)
  /// A restore of a backup; after one to a new device, all later steps apply to that device.
  case restore(Restore)
  /// An operation that is cut off in the middle, as by a crash.
  case interrupt(Interruption)
  /// The recovery of interrupted operations.
  case recover
  /// A name for the current state.
  case moment(String)
  /// Expectations of the current state.
  case expect([ScenarioExpectation])
}

extension ScenarioAction {
  /// The kinds of actions; the words are keys of a document.
  package enum Kind: String, CaseIterable, Sendable, Hashable {
    case deliver, write, remove, mark, backup, update, rollback, purge, offload, restore, interrupt
    case recover, moment, expect

    /// The kinds that `interrupt` can contain: operations of this program.
    package static let interruptible: [Kind] = [
      .deliver, .backup, .update, .rollback, .purge, .offload, .restore,
    ]

    /// Whether the operation has phases, at which it makes its changes durable. A purge has none:
    /// it deletes only data that apps recreate.
    package var hasPhases: Bool { self != .purge }
  }

  /// The kind.
  package var kind: Kind {
    switch self {
    case .deliver: .deliver
    case .write: .write
    case .remove: .remove
    case .mark: .mark
    case .backup: .backup
    case .update: .update
    case .rollback: .rollback
    case .purge: .purge
    case .offload: .offload
    case .restore: .restore
    case .interrupt: .interrupt
    case .recover: .recover
    case .moment: .moment
    case .expect: .expect
    }
  }
}

// MARK: - Changes by apps

extension ScenarioAction {
  /// A file or document package that is passed to an app.
  package struct Delivery: Sendable, Hashable {
    /// The bundle identifier of the receiving app.
    package let app: ByteString
    /// The name in the inbox, or nil for the name of the copied file or package.
    package let name: ByteString?
    /// The content.
    package let content: ScenarioContent
  }

  /// A file that an app writes.
  package struct Writing: Sendable, Hashable {
    /// The logical path, in a container.
    package let path: LogicalPath
    /// The content.
    package let content: ScenarioContent
    /// The permissions, or nil for 0644.
    package let mode: UInt32?
  }

  /// A change of an exclusion mark.
  package struct Marking: Sendable, Hashable {
    /// The logical path, in a container.
    package let path: LogicalPath
    /// Whether the mark is set; otherwise it is removed.
    package let isExcluded: Bool
    /// The extended attribute without `user.`, or nil for the default of the platform's version.
    package let attribute: ByteString?
  }
}

/// The content of a file in a scenario.
package enum ScenarioContent: Sendable, Hashable {
  /// A text.
  case text(String)
  /// The bytes of `bytes(count:)`, by their number.
  case size(Int64)
  /// A copy of a file or, in a delivery, of a document package: an absolute path, or one relative
  /// to the document's directory.
  case file(ByteString)

  /// Returns bytes that are the same in each run and do not compress, by xorshift64 (Marsaglia,
  /// Xorshift RNGs, Journal of Statistical Software 8, 14).
  ///
  /// - Parameter count: The number of bytes, at most `ScenarioDocument.maximumContent`.
  package static func bytes(count: Int) -> [UInt8] {
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      for index in 0..<count {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        buffer.initializeElement(at: index, to: UInt8(truncatingIfNeeded: state >> 24))
      }
      initialized = count
    }
  }
}

// MARK: - Operations

extension ScenarioAction {
  /// A backup.
  package struct Backup: Sendable, Hashable {
    /// The name of the snapshot for `restore`, and of the moment; nil for none.
    package let name: String?
    /// The verdict that decides which data is stored: this program's or the platform's.
    package let view: Verdicts.View
  }

  /// An update of an app.
  package struct Update: Sendable, Hashable {
    /// The bundle identifier.
    package let app: ByteString
    /// The new version.
    package let source: Source
    /// Whether data that the platform may drop is dropped.
    package let isStrict: Bool

    /// The new version of an app.
    package enum Source: Sendable, Hashable {
      /// The installed bundle with another version and build.
      case version(String)
      /// A package: an absolute path, or one relative to the document's directory.
      case package(ByteString)
    }
  }

  /// A rollback of an update.
  package struct Rollback: Sendable, Hashable {
    /// The bundle identifier.
    package let app: ByteString
    /// The data to keep, or nil to refuse if data is newer than the update.
    package let data: Data?

    /// The data that an app has after a rollback.
    package enum Data: String, CaseIterable, Sendable, Hashable {
      /// The data from before the update.
      case before
      /// The current data.
      case now
      /// The current data or, where it is missing, the data from before the update.
      case merge
    }
  }

  /// A purge.
  package enum Purge: Sendable, Hashable {
    /// By a pressure level of the policy.
    case level(Pressure.Level)
    /// Until a number of bytes is free.
    case free(Int64)
  }

  /// A restore.
  package struct Restore: Sendable, Hashable {
    /// The target.
    package let target: Target
    /// The name of a backup, or nil for the last one.
    package let snapshot: String?
    /// The bundle identifier of the app to restore, or nil for all.
    package let app: ByteString?

    /// The target of a restore.
    package enum Target: String, CaseIterable, Sendable, Hashable {
      /// A device with the same apps and no data.
      case newDevice = "new-device"
      /// The device that was backed up.
      case inPlace = "in-place"
    }
  }

  /// An operation that is cut off in the middle.
  package struct Interruption: Sendable, Hashable {
    /// The operation, one of `Kind.interruptible`.
    package let action: ScenarioAction
    /// The number of the phase or call at which the operation ends, from 1.
    package let count: Int
    /// The unit in which `count` counts.
    package let unit: Unit
    /// Whether a recovery follows immediately.
    package let recovers: Bool

    /// The maximum of `count`.
    package static let maximumCount = 100_000

    /// The unit in which the place of an interruption is counted.
    package enum Unit: String, CaseIterable, Sendable, Hashable {
      /// A point at which the operation makes its data or its journal durable (fsync(2),
      /// syncfs(2)).
      case phase
      /// A system call that changes files.
      case call
    }
  }
}
