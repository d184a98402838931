public import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// Whether what an operation writes finds room on the volumes concerned, before anything is written.
struct VolumeNeeds {
  /// By the device number of the file system.
  private var needs: [UInt64: VolumeNeed] = [:]
  /// What is restored on each.
  private var plans: [UInt64: [RestorePlan]] = [:]

  /// What a restore to a plain directory needs.
  init(_ plan: RestorePlan, from reader: RepositoryReader) {
    add(plan)
    settle(reader)
  }

  /// What a restore into a device needs.
  init(_ plan: DeviceRestorePlan, from reader: RepositoryReader) {
    for part in plan.parts { add(part.plan) }
    settle(reader)
  }

  /// What comes of a package, and of a snapshot.
  init(_ plan: AppChangePlan, from reader: RepositoryReader? = nil) {
    for part in plan.restore?.parts ?? [] { add(part.plan) }
    if let reader { settle(reader) }
    guard let package = plan.request.package,
      let to = plan.containers.first(where: { $0.logical.kind == .bundle && $0.to != nil })?.to
    else { return }
    add(at: to.parent) { _ in (package.size.allocated, UInt64(package.size.entries)) }
  }

  /// What the volumes have to hold, in the order of the directories.
  var all: [VolumeNeed] { needs.values.sorted { $0.directory < $1.directory } }

  /// How many bytes are to be written on a volume, by the number of its file system.
  func bytes(on device: UInt64) -> UInt64 { needs[device]?.bytes ?? 0 }

  // MARK: - Adding up

  private mutating func add(_ plan: RestorePlan) {
    if plan.isIdle { return }
    if let device = add(at: plan.place.directory, { plan.need(on: $0) }) {
      plans[device, default: []].append(plan)
    }
  }

  /// Adds what is written into a directory, with the directories that are to be made for it; gives the volume.
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
    // What a killed run staged there is removed first, and gives room.
    if StagingDirectory.isAny(in: directory) { need.isCertain = false }
    needs[device] = need
    return device
  }

  /// Reads the lists of large files where there is no room for them as if they had no holes.
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

  /// The nearest directory at or above a path that is there, and how many are missing.
  private static func nearest(_ path: ByteString, _ missing: inout UInt64) -> Directory? {
    var parts = path.components
    while true {
      let joined = ByteString(parts.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
      let above: ByteString =
        path.isAbsolute ? ByteString("/").appending(joined) : parts.isEmpty ? "." : joined
      if let directory = try? Directory.open(path: above) { return directory }
      if parts.popLast() == nil { return nil }
      missing += 1
    }
  }

  // MARK: - Refusing

  /// Refuses what surely does not fit.
  ///
  /// - Parameter action: what cannot be done then, followed by the folder: `restore to`.
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
    "free space on that volume, as with 'sandboxctl purge' or 'sandboxctl trash empty'"

  /// What is to be written, and what the volumes have room for: a look at the system, each time it is
  /// asked for.
  ///
  /// - Parameter reader: what a plan that brings something back reads from.
  public func volumeNeeds(from reader: RepositoryReader? = nil) -> [VolumeNeed] {
    isSimulated ? [] : VolumeNeeds(self, from: reader).all
  }

  /// Why what the package or the snapshot brings finds no room on the device's volumes now: a look at the
  /// system, each time it is asked for, so that it is none of the plan's own refusals.
  ///
  /// - Parameter reader: what a plan that brings something back reads from.
  public func missingRoom(from reader: RepositoryReader? = nil) -> Refusal? {
    let needs = volumeNeeds(from: reader)
    guard let need = needs.first(where: { $0.verdict == .lacksRoom }), let reason = need.shortage
    else { return nil }
    return Refusal(.noRoom, "in '\(need.directory)' \(reason)", hint: Self.roomHint)
  }
}
