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

  /// What comes of a package, and of a snapshot. A pure plan does not ask a volume for its room, so
  /// this is no refusal of the plan.
  init(_ plan: AppChangePlan) {
    for part in plan.restore?.parts ?? [] {
      add(part.plan.bytesNeeded, entries: 0, at: part.target)
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

  /// Refuses what does not fit.
  ///
  /// - Parameters:
  ///   - action: what cannot be done then, followed by the folder: `restore to`.
  func require(
    _ action: String = "restore to",
    hint: String = "free space there, or restore a part: '--app', '--class' or 'SNAP:PATH'"
  ) throws(LifecycleError) {
    for need in needs.values {
      let reason: String
      // A file system that does not count what it can hold says 0.
      let files = need.space.availableInodes
      if need.bytes > need.space.available {
        reason =
          "up to \(ByteCount.text(need.bytes)) are to be written, and "
          + "\(ByteCount.text(need.space.available)) are free there"
      } else if files > 0, need.entries > files {
        reason = "\(need.entries) files and folders are to be made, and there is room for \(files)"
      } else {
        continue
      }
      throw LifecycleError(.failed, "cannot \(action) '\(need.folder)': \(reason)", hint: hint)
    }
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
