internal import SandboxModel
internal import SystemIO

/// Whether what an operation writes finds room on the device's volumes, before anything is written.
struct DeviceSpace {
  /// What a volume is to hold.
  private struct Need {
    var folder: ByteString
    var bytes: UInt64
    var entries: UInt64
    let space: VolumeSpace
  }

  /// By the device number of the file system.
  private var needs: [UInt64: Need] = [:]

  init(_ plan: DeviceRestorePlan) {
    for part in plan.parts { add(part.plan.bytesNeeded, entries: 0, at: part.target) }
  }

  /// What comes of a package, and of a snapshot.
  init(_ plan: AppChangePlan) {
    for part in plan.restore?.parts ?? [] {
      let entries = part.plan.creates.entries + part.plan.replaces.entries
      add(part.plan.bytesNeeded, entries: UInt64(entries), at: part.target)
    }
    guard let package = plan.request.package,
      let to = plan.containers.first(where: { $0.logical.kind == .bundle && $0.to != nil })?.to
    else { return }
    add(package.size.allocated, entries: UInt64(package.size.entries), at: to.parent)
  }

  private mutating func add(_ bytes: UInt64, entries: UInt64, at path: ByteString) {
    guard bytes > 0, let folder = Self.nearest(path), let space = try? folder.space(),
      let device = try? folder.status().identity.device
    else { return }
    let before = needs[device]
    needs[device] = Need(
      folder: path, bytes: [before?.bytes ?? 0, bytes].clampedSum,
      entries: (before?.entries ?? 0) + entries, space: space)
  }

  /// How many bytes are to be written on a volume, by the number of its file system.
  func bytes(on device: UInt64) -> UInt64 { needs[device]?.bytes ?? 0 }

  /// Where something does not fit, and why not; nothing where everything does.
  func shortage() -> (folder: ByteString, reason: String)? {
    for need in needs.values.sorted(by: { $0.folder < $1.folder }) {
      // A file system that does not count what it can hold says 0.
      let files = need.space.availableInodes
      if need.bytes > need.space.available {
        let free = ByteCount.text(need.space.available)
        return (
          need.folder,
          "up to \(ByteCount.text(need.bytes)) are to be written, and \(free) are free there"
        )
      }
      if files > 0, need.entries > files {
        return (
          need.folder,
          "\(need.entries) files and folders are to be made, and there is room for \(files)"
        )
      }
    }
    return nil
  }

  /// Refuses what does not fit.
  ///
  /// - Parameters:
  ///   - action: what cannot be done then, followed by the folder: `restore to`.
  func require(
    _ action: String = "restore to",
    hint: String = "free space there, or restore a part: '--app', '--class' or 'SNAP:PATH'"
  ) throws(LifecycleError) {
    guard let (folder, reason) = shortage() else { return }
    throw LifecycleError(.failed, "cannot \(action) '\(folder)': \(reason)", hint: hint)
  }

  /// The nearest folder at or above a path that is there.
  private static func nearest(_ path: ByteString) -> Folder? {
    var parts = path.components
    while true {
      let joined = ByteString(parts.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
      if let folder = try? Folder.open(path: ByteString("/").appending(joined)) { return folder }
      if parts.popLast() == nil { return nil }
    }
  }
}

extension AppChangePlan {
  static let roomHint =
    "free space on that volume, as with 'sandboxctl purge' or 'sandboxctl trash empty'"

  /// Why what the package or the snapshot brings finds no room on the device's volumes now: a look at the
  /// system, each time it is asked for, so that it is none of the plan's own refusals.
  public func missingRoom() -> Refusal? {
    guard !isSimulated, let (folder, reason) = DeviceSpace(self).shortage() else { return nil }
    return Refusal(.noRoom, "in '\(folder)' \(reason)", hint: Self.roomHint)
  }
}
