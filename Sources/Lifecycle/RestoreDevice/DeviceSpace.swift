internal import SystemIO

/// Whether what a restore writes finds room on the device's volumes, before anything is written.
struct DeviceSpace {
  /// What a volume is to hold, by the device number of its file system.
  private var needs: [UInt64: (folder: ByteString, bytes: UInt64, free: UInt64)] = [:]

  init(_ plan: DeviceRestorePlan) {
    for part in plan.parts {
      let bytes = part.plan.bytesNeeded
      guard bytes > 0, let folder = Self.nearest(part.target), let space = try? folder.space(),
        let device = try? folder.status().identity.device
      else { continue }
      let before = needs[device]?.bytes ?? 0
      needs[device] = (part.target, before + bytes, space.available)
    }
  }

  /// Refuses what does not fit.
  func require() throws(LifecycleError) {
    for need in needs.values where need.bytes > need.free {
      throw LifecycleError(
        .failed,
        "cannot restore to '\(need.folder)': up to \(ByteCount.text(need.bytes)) are to be written, "
          + "and \(ByteCount.text(need.free)) are free there",
        hint: "free space there, or restore a part: '--app', '--class' or 'SNAP:PATH'")
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
