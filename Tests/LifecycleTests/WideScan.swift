import PolicyEngine
import SystemIO
import TestSupport
import Testing

@testable import DeviceScan

extension ContainerScan {
  /// A scan of one directory with `count` files, which would take long to scan on a device.
  ///
  /// - Parameters:
  ///   - name: the name of each file, by its number.
  ///   - verdict: the policy's verdict on each, by its number.
  static func wide(
    _ count: Int, name: (Int) -> String, verdict: (Int) -> Verdict = { _ in .silent() }
  ) throws -> ContainerScan {
    let fixture = try Fixture(inMemory: true)
    _ = try fixture.directory.write([1], at: "tree/file")
    let model = try #require(try fixture.scan().containers.first)
    var scan = ContainerScan(model.container)
    scan.append(model.entries[0], accessed: 0)
    scan.entries[0].firstChild = 1
    scan.entries[0].childCount = Int32(count)
    for number in 0..<count {
      let name = Array(name(number).utf8)
      let verdict = verdict(number)
      scan.append(
        ScannedEntry(
          parent: 0, nameStart: UInt32(scan.names.count), nameLength: UInt16(name.count),
          selection: .included, status: model.entries[1].status,
          verdicts: Verdicts(keep: verdict, platform: verdict), type: .file), accessed: 0)
      scan.names.append(contentsOf: name)
    }
    return scan
  }
}
