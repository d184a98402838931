package import ArchiveStore
internal import DeviceTransaction
internal import SandboxModel
package import SystemIO

/// The space that an operation needs on a volume, compared with the room there (docs/restore.md,
/// "Space").
///
/// The need is a minimum, so nothing that would fit is refused; an operation may still run out of
/// room. Replaced entries still exist while new ones are staged, so they free nothing.
package struct VolumeNeed: Sendable, Hashable {
  /// The directory on the volume that is written into.
  package let directory: ByteString
  /// The bytes to write, without holes.
  package internal(set) var bytes: UInt64
  /// The number of files and directories to create.
  package var entries: UInt64
  /// The room on the volume.
  package let space: VolumeSpace
  /// Whether the space that the files take is known; false if the file system may compress them.
  package internal(set) var isCertain: Bool

  /// Whether the operation fits.
  package enum Verdict: String, Sendable {
    case fits = "yes"
    case lacksRoom = "no"
    /// It does not fit uncompressed, but may fit compressed.
    case uncertain
  }

  package init(directory: ByteString, bytes: UInt64, entries: UInt64, space: VolumeSpace) {
    (self.directory, self.bytes, self.entries, self.space) = (directory, bytes, entries, space)
    isCertain = space.keeping != .unknown
  }

  /// The bytes that this process can still write there.
  package var room: UInt64 {
    Host.userID == 0 ? [space.available, space.reserved].clampedSum : space.available
  }

  /// Whether the operation fits.
  package var verdict: Verdict {
    shortage == nil ? .fits : isCertain ? .lacksRoom : .uncertain
  }

  /// The shortage as a sentence; nil if the operation fits.
  package var shortage: String? {
    if bytes > room {
      return
        "\(ByteCount.text(bytes)) are needed, but only \(ByteCount.text(room)) are free there"
    }
    if space.countsInodes, entries > space.availableInodes {
      return "\(entries) files and directories are needed, but only "
        + "\(space.availableInodes) more fit"
    }
    return nil
  }
}

/// The space that an operation needs on each affected volume, checked before anything is written.
package struct VolumeNeeds {
  /// The needs by the device number of the file system.
  private var needs: [UInt64: VolumeNeed] = [:]
  /// The restore plans by the device number of the file system.
  private var plans: [UInt64: [RestorePlan]] = [:]

  /// Computes the needs of several restores, and of what `add(at:)` adds later.
  package init(of plans: [RestorePlan], from reader: RepositoryReader?) {
    for plan in plans { add(plan) }
    if let reader { settle(reader) }
  }

  /// The needs of all volumes, in the order of their directories.
  package var all: [VolumeNeed] { needs.values.sorted { $0.directory < $1.directory } }

  /// Returns the bytes to write on a volume, by the device number of its file system.
  package func bytes(on device: UInt64) -> UInt64 { needs[device]?.bytes ?? 0 }

  // MARK: - Adding up

  private mutating func add(_ plan: RestorePlan) {
    if plan.isIdle { return }
    if let device = add(at: plan.target.directory, { plan.need(on: $0) }) {
      plans[device, default: []].append(plan)
    }
  }

  /// Adds the need in a directory, including the parent directories to create. Returns the device
  /// number of the volume.
  @discardableResult
  package mutating func add(
    at path: ByteString, _ count: (VolumeSpace) -> (bytes: UInt64, entries: UInt64)
  ) -> UInt64? {
    var missing: UInt64 = 0
    guard let directory = Self.nearest(path, &missing), let space = try? directory.space(),
      let device = try? directory.status().identity.device
    else { return nil }
    let (bytes, entries) = count(space)
    var need = needs[device] ?? VolumeNeed(directory: path, bytes: 0, entries: 0, space: space)
    need.bytes.addClamping(bytes)
    need.entries.addClamping([entries, missing].clampedSum)
    // The leftovers of a killed run are removed first, which frees space.
    if StagingDirectory.isAny(in: directory) { need.isCertain = false }
    needs[device] = need
    return device
  }

  /// Reads the piece lists of large files if their volumes have no room for them without holes.
  private mutating func settle(_ reader: RepositoryReader) {
    for (device, plans) in plans {
      guard var need = needs[device], need.verdict != .fits else { continue }
      for plan in plans {
        guard let holes = plan.holesInLists(on: need.space, from: reader) else {
          need.isCertain = false
          continue
        }
        need.bytes -= min(need.bytes, holes)
      }
      needs[device] = need
    }
  }

  /// Opens the nearest existing directory at or above a path, and counts the missing ones.
  private static func nearest(_ path: ByteString, _ missing: inout UInt64) -> Directory? {
    var path: ByteString = path.isEmpty ? "." : path
    while true {
      if let directory = try? Directory.open(path: path) { return directory }
      let parent = path.dirname
      if parent == path { return nil }
      path = parent
      missing += 1
    }
  }

  // MARK: - Refusing

  /// Refuses an operation that certainly does not fit.
  ///
  /// - Parameter action: the action for the error, followed by the directory: `restore to`.
  package func require(
    _ action: String = "restore to", hint: String = RestorePlan.roomHint
  ) throws(OperationError) {
    guard let need = all.first(where: { $0.verdict == .lacksRoom }), let reason = need.shortage
    else { return }
    throw OperationError(
      .failed, code: .noSpace, action, subject: need.directory,
      reason: reason, hint: hint)
  }
}

extension RestorePlan {
  /// Returns the space needed and the room on the volume, read from the system with each call.
  /// Empty if nothing is to be done.
  package func volumeNeeds(from reader: RepositoryReader) -> [VolumeNeed] {
    VolumeNeeds(of: [self], from: reader).all
  }
}
