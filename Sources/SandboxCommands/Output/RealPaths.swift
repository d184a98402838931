internal import Codecs
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// The real paths of logical paths on a device, for remarks about them.
struct RealPaths {
  private let device: Device
  /// The targets of containers that are moved or created, by logical path.
  private let targets: [(path: ByteString, target: ByteString)]

  init(_ device: Device) { (self.device, targets) = (device, []) }

  /// Uses the targets of a restore.
  init(_ plan: DeviceRestorePlan) {
    device = plan.request.device
    targets = plan.parts.map { ($0.path, $0.target) }
  }

  /// Returns the real path, or nil if the path is not a logical path or not in a container.
  func path(of logical: ByteString) -> ByteString? {
    for (path, target) in targets where logical.isWithin(path) {
      return target.appending(logical.relative(to: path))
    }
    guard !logical.isAbsolute, let path = try? LogicalPath(logical) else { return nil }
    return try? device.realPath(of: path)
  }

  /// Returns a remark as text: "apps/org.a/data/x (/home/u/…/x): permission denied".
  func text(_ remark: PathRemark) -> String {
    let place = path(of: remark.path).map { " (\($0))" } ?? ""
    return "\(remark.path)\(place): \(remark.remark)"
  }

  /// Returns remarks as JSON, with `real_path` if it is known.
  func json(_ remarks: [PathRemark]) -> JSON {
    .array(
      remarks.map { remark in
        let place = path(of: remark.path).map { JSON.path($0, named: "real_path") } ?? []
        return .object(
          JSON.path(remark.path) + place + [JSON.Member("note", .string(remark.remark))])
      })
  }
}
