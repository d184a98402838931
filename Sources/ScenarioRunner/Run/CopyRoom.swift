internal import DeviceDiscovery
internal import Restore
internal import SandboxModel
internal import Scenario
internal import SystemIO

/// The space for the copies of devices, compared with their sizes before the first one is made.
///
/// The need is a minimum: steps add to it, and kept copies stay. Volumes on which a copy may share
/// its blocks with the device are not compared.
struct CopyRoom {
  /// The number of the largest copies that fit at once, at least 1.
  private(set) var copies = Int.max

  /// Measures the devices.
  ///
  /// - Throws: `OperationError`: `no_space` if a copy certainly does not fit, `interrupted`. A
  ///   device that cannot be read is not counted: its case ends with the error.
  init(for cases: [ScenarioCase], in place: ByteString, _ options: ScenarioOptions) throws {
    guard let space = options.space(place) else { return }
    let mayShare = (try? Directory.open(path: place).mayShareBlocks()) ?? false
    var known: [ByteString: VolumeNeed] = [:]
    var needs: [VolumeNeed] = []
    for one in cases {
      guard case .root(let path, let layout) = one.document.device else { continue }
      let root = one.document.resolved(path)
      if known[root] == nil {
        let empty = VolumeNeed(directory: place, bytes: 0, entries: 0, space: space)
        known[root] =
          try Self.need(
            of: root, layout, empty, mayShare: mayShare, isStopping: options.isStopping) ?? empty
      }
      guard let need = known[root] else { continue }
      if need.verdict == .lacksRoom, let shortage = need.shortage {
        throw Self.lacksRoom(for: root, in: place, shortage)
      }
      needs.append(need)
    }
    copies = Self.fitting(needs)
  }

  private static func lacksRoom(
    for root: ByteString, in place: ByteString, _ shortage: String
  ) -> OperationError {
    OperationError(
      .failed, code: .noSpace, "copy the device to", subject: place,
      reason: "for a copy of '\(root)' \(shortage)",
      hint: "free space there, or set TMPDIR to a directory with more; what '--keep-copy' keeps "
        + "there takes space, too")
  }

  /// Returns the number of the largest copies that fit together.
  private static func fitting(_ needs: [VolumeNeed]) -> Int {
    var count = 0
    var total: VolumeNeed?
    for need in needs.sorted(by: { $0.bytes > $1.bytes }) {
      let sum = VolumeNeed(
        directory: need.directory, bytes: [total?.bytes ?? 0, need.bytes].clampedSum,
        entries: [total?.entries ?? 0, need.entries].clampedSum, space: need.space)
      if sum.verdict == .lacksRoom { return max(1, count) }
      total = sum
      count += 1
    }
    return .max
  }

  /// Returns the space that a copy of a device needs; nil if it is unknown or the copy may share
  /// the device's blocks.
  private static func need(
    of path: ByteString, _ layout: Layout?, _ empty: VolumeNeed, mayShare: Bool,
    isStopping: () -> Bool
  ) throws -> VolumeNeed? {
    guard let device = try? Device.find(root: path, layout: layout),
      let root = try? Directory.open(resolved: device.root)
    else { return nil }
    if mayShare, (try? root.mayShareBlocks()) ?? true { return nil }
    guard let size = try TreeCopy.size(of: root, on: empty.space, isStopping: isStopping) else {
      return nil
    }
    return VolumeNeed(
      directory: empty.directory, bytes: size.bytes, entries: size.entries, space: empty.space)
  }
}
