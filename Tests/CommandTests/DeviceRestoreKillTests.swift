import Foundation
import SystemIO
import TestSupport
import Testing

/// A restore into a device that is killed at any moment: a container that is made is not there, or whole;
/// in one that is there each file is.
@Suite(.serialized) struct DeviceRestoreKillTests {
  @Test func aContainerIsOldOrNew() throws {
    var random = Seeded.fresh()
    let rig = try DeviceRestoreFixture(policy: "everything")
    let restore = "restore latest --in-place --repo repo --quiet"
    try rig.removeContainers(of: "device")
    var moments = Moments(4)
    try moments.measure { _ = try rig.cli.succeed(restore) }
    let all = try rig.cli.containers(of: "original")
    while let moment = moments.next(using: &random) {
      try rig.removeContainers(of: "device")
      let isKilled = try moments.run(rig.cli, restore, at: moment)
      if isKilled { moments.count += 1 }
      let present = try rig.cli.containers(of: "device")
      #expect(present.count == all.count || isKilled)
      for container in present {
        let source = try #require(all.first { $0.path == container.path }?.realPath)
        try ChangeDetector.expectSame(rig.cli.directory, source, container.realPath)
      }
    }
    #expect(moments.count == 4, "in \(moments.round) rounds")
    // What a killed run left behind is no container, and goes with the next run.
    _ = try rig.cli.succeed(restore)
    #expect(try rig.cli.containers(of: "device").count == all.count)
    for directory in Set(all.map(\.realPath.directoryPath)) {
      let names = try Directory.open(path: directory).names()
      #expect(!names.contains { $0.description.hasPrefix(".sandboxctl") })
    }
  }

  /// Into containers that are there: each file is as it was or as stored, what gave way is there or in
  /// the trash, and after the recovery the same command completes it.
  @Test func whatIsMergedIsOldOrNew() throws {
    var random = Seeded.fresh()
    let rig = try DeviceRestoreFixture(policy: "everything")
    let restore = "restore latest --in-place --repo repo --no-snapshot --quiet"
    try rig.spoilSomeFiles(of: "device", &random)
    _ = try Program.run("cp", ["-a", "device", "spoilt"], in: rig.cli.directory.url)
    var moments = Moments(4)
    try moments.measure { _ = try rig.cli.succeed(restore) }
    while let moment = moments.next(using: &random) {
      try rig.cli.directory.directory.removeTree("device")
      _ = try Program.run("cp", ["-a", "spoilt", "device"], in: rig.cli.directory.url)
      if try moments.run(rig.cli, restore, at: moment) { moments.count += 1 }
      try rig.expectOldOrNew("killed after \(moment) s")
      _ = try rig.cli.succeed("recover --root device --quiet")
      try rig.expectOldOrNew("recovered")
      _ = try rig.cli.succeed(restore)
      // Where a database changed the index of its log was removed, which this policy keeps, too.
      _ = try rig.cli.succeed(restore)
      for container in try rig.cli.containers(of: "original") {
        let inner = ByteString(
          container.realPath.bytes.dropFirst(rig.cli.directory.path("original").count + 1))
        let differences = try ChangeDetector.differences(
          rig.cli.directory, ByteString("original").appending(inner),
          ByteString("device").appending(inner))
        #expect(differences.isEmpty, "\(container.path): \(differences)")
      }
    }
    #expect(moments.count == 4, "in \(moments.round) rounds")
  }
}

extension DeviceRestoreFixture {
  /// Gives every third of the apps' own files another content; by its bundle and by the platform's
  /// metadata an app would no longer be known.
  func spoilSomeFiles(of device: String, _ random: inout Seeded) throws {
    for path in try files(of: device)
    where (path.contains("/Documents/") || path.contains("/Library/"))
      && !path.contains("/Bundle/") && !path.hasSuffix("-shm")
      && Int.random(in: 0..<3, using: &random) == 0
    {
      try cli.directory.write("spoilt \(path)", at: ByteString("\(device)/\(path)"))
    }
  }

  /// Each file of the containers has its bytes of `spoilt` or those of `original`, and those of `spoilt`
  /// are there or in the trash.
  func expectOldOrNew(_ what: String) throws {
    var kept: Set<[UInt8]> = []
    for path in try files(of: "device", "/.sandboxctl/trash") {
      kept.insert(try cli.directory.read(ByteString("device/.sandboxctl/trash/\(path)")))
    }
    // The index of a database's log goes with the log.
    for path in try files(of: "spoilt") where !path.hasSuffix("-shm") {
      let old = try cli.directory.read(ByteString("spoilt/\(path)"))
      let found = try cli.directory.read(ByteString("device/\(path)"))
      if found == old { continue }
      #expect(found == (try cli.directory.read(ByteString("original/\(path)"))), "\(what): \(path)")
      #expect(kept.contains(old), "\(what): \(path) is lost")
    }
  }

  /// The files below a directory of a device, but for what is staged or the program's own, as far as their
  /// names are text.
  private func files(of device: String, _ inner: String = "/data/Containers") throws -> [String] {
    let top = cli.directory.string + "/" + device
    guard let all = FileManager.default.enumerator(atPath: top + inner) else { return [] }
    let prefix = inner.hasPrefix("/.") ? "" : String(inner.dropFirst()) + "/"
    var found: [String] = []
    while let path = all.nextObject() as? String {
      if path.contains(".sandboxctl-restore-") { continue }
      if all.fileAttributes?[.type] as? FileAttributeType == .typeRegular {
        found.append(prefix + path)
      }
    }
    return found
  }
}
