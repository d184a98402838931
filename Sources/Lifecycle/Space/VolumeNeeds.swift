package import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// The space that an operation needs on each affected volume, checked before anything is written.
struct VolumeNeeds {
  /// The needs by the device number of the file system.
  private var needs: [UInt64: VolumeNeed] = [:]
  /// The restore plans by the device number of the file system.
  private var plans: [UInt64: [RestorePlan]] = [:]

  /// Computes the needs of a restore to a plain directory.
  init(_ plan: RestorePlan, from reader: RepositoryReader) {
    add(plan)
    settle(reader)
  }

  /// Computes the needs of a restore into a device.
  init(_ plan: DeviceRestorePlan, from reader: RepositoryReader) {
    for part in plan.parts { add(part.plan) }
    settle(reader)
  }

  /// Computes the needs of an app change: of its package and of the snapshot that it restores.
  init(_ plan: AppChangePlan, from reader: RepositoryReader? = nil) {
    for part in plan.restore?.parts ?? [] { add(part.plan) }
    if let reader { settle(reader) }
    guard let package = plan.request.package,
      let to = plan.containers.first(where: { $0.logical.kind == .bundle && $0.to != nil })?.to
    else { return }
    add(at: to.parent) { _ in (package.size.allocated, UInt64(package.size.entries)) }
  }

  /// The needs of all volumes, in the order of their directories.
  var all: [VolumeNeed] { needs.values.sorted { $0.directory < $1.directory } }

  /// Returns the bytes to write on a volume, by the device number of its file system.
  func bytes(on device: UInt64) -> UInt64 { needs[device]?.bytes ?? 0 }

  // MARK: - Adding up

  private mutating func add(_ plan: RestorePlan) {
    if plan.isIdle { return }
    if let device = add(at: plan.place.directory, { plan.need(on: $0) }) {
      plans[device, default: []].append(plan)
    }
  }

  /// Adds the need in a directory, including the parent directories to create. Returns the device
  /// number of the volume.
  @discardableResult
  private mutating func add(
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
    var parts = path.components
    while true {
      let joined = ByteString(joining: parts)
      let above: ByteString =
        path.isAbsolute ? ByteString("/").appending(joined) : parts.isEmpty ? "." : joined
      if let directory = try? Directory.open(path: above) { return directory }
      if parts.popLast() == nil { return nil }
      missing += 1
    }
  }

  // MARK: - Refusing

  /// Refuses an operation that certainly does not fit.
  ///
  /// - Parameter action: the action for the error, followed by the directory: `restore to`.
  func require(
    _ action: String = "restore to", hint: String = RestorePlan.roomHint
  ) throws(LifecycleError) {
    guard let need = all.first(where: { $0.verdict == .lacksRoom }), let reason = need.shortage
    else { return }
    throw LifecycleError(.failed, "cannot \(action) '\(need.directory)': \(reason)", hint: hint)
  }
}

extension AppChangePlan {
  static let roomHint =
    "free space on that volume, for example with 'sandboxctl purge' or 'sandboxctl trash empty'"

  /// Returns the space needed and the room on the volumes, read from the system with each call.
  ///
  /// - Parameter reader: the repository of a plan that restores data.
  package func volumeNeeds(from reader: RepositoryReader? = nil) -> [VolumeNeed] {
    isSimulated ? [] : VolumeNeeds(self, from: reader).all
  }

  /// Returns a refusal if the package or the restored data does not fit on the device's volumes
  /// now; nil if it does. It is read from the system with each call, so it is not one of the plan's
  /// own refusals.
  ///
  /// - Parameter reader: the repository of a plan that restores data.
  package func missingRoom(from reader: RepositoryReader? = nil) -> Refusal? {
    let needs = volumeNeeds(from: reader)
    guard let need = needs.first(where: { $0.verdict == .lacksRoom }), let reason = need.shortage
    else { return nil }
    return Refusal(.noRoom, "in '\(need.directory)' \(reason)", hint: Self.roomHint)
  }
}
