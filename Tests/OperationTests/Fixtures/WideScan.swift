import PolicyEngine
import SystemIO
import TestSupport
import Testing

@testable import DeviceScan

extension ContainerScan {
  /// A scan of one directory with `count` files, which would take a long time on a real device.
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

  /// A scan of `count` directories with one file each. All of them have the status of the first
  /// directory of `model` and of the first file in it.
  static func directories(_ count: Int, like model: ContainerScan) throws -> ContainerScan {
    let directory = try #require(model.entries[0].children.first)
    let file = try #require(model.entries[directory].children.first)
    var scan = ContainerScan(model.container)
    scan.append(model.entries[0], accessed: 0)
    (scan.entries[0].firstChild, scan.entries[0].childCount) = (1, Int32(count))
    scan.add(model.entries[directory], named: { "directory \($0 &* 7919 % count)" }, count)
    scan.add(model.entries[file], named: { _ in model.name(file).description }, count)
    for number in 1...count {
      (scan.entries[number].parent, scan.entries[number].firstChild) = (0, Int32(count + number))
      scan.entries[count + number].parent = Int32(number)
    }
    return scan
  }

  private mutating func add(_ model: ScannedEntry, named name: (Int) -> String, _ count: Int) {
    for number in 0..<count {
      let name = Array(name(number).utf8)
      var entry = ScannedEntry(
        parent: 0, nameStart: UInt32(names.count), nameLength: UInt16(name.count),
        selection: model.selection, status: model.status, verdicts: model.verdicts,
        type: model.type)
      (entry.firstChild, entry.childCount) = (model.firstChild, model.childCount)
      append(entry, accessed: 0)
      names.append(contentsOf: name)
    }
  }
}
