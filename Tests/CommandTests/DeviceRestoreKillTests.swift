import Foundation
import SystemIO
import TestSupport
import Testing

/// A restore into a device that is killed at any moment: a new container is missing or complete,
/// and so is each file of an existing container.
@Suite(.serialized) struct DeviceRestoreKillTests {
  @Test func containerIsMissingOrComplete() throws {
    var random = Seeded.fresh()
    let fixture = try DeviceRestoreFixture(policy: "everything")
    let restore = "restore latest --in-place --repo repo --quiet"
    try fixture.removeContainers(of: "device")
    var moments = Moments(4)
    try moments.measure { _ = try fixture.cli.succeed(restore) }
    let all = try fixture.cli.containers(of: "original")
    while let moment = moments.next(using: &random) {
      try fixture.removeContainers(of: "device")
      let isKilled = try moments.run(fixture.cli, restore, at: moment)
      if isKilled { moments.count += 1 }
      let present = try fixture.cli.containers(of: "device")
      #expect(present.count == all.count || isKilled)
      for container in present {
        let source = try #require(all.first { $0.path == container.path }?.realPath)
        try ChangeDetector.expectSame(fixture.cli.directory, source, container.realPath)
      }
    }
    #expect(moments.count == 4, "in \(moments.round) rounds")
    // The remains of a killed run are not a container, and the next run removes them.
    _ = try fixture.cli.succeed(restore)
    #expect(try fixture.cli.containers(of: "device").count == all.count)
    for directory in Set(all.map(\.realPath.directoryPath)) {
      let names = try Directory.open(path: directory).names()
      #expect(!names.contains { $0.description.hasPrefix(".sandboxctl") })
    }
  }

  /// Into existing containers: each file is as before or as stored, the replaced files are in place
  /// or in the trash, and after the recovery the same command completes the restore.
  @Test func mergedFileIsOldOrNew() throws {
    var random = Seeded.fresh()
    let fixture = try DeviceRestoreFixture(policy: "everything")
    let restore = "restore latest --in-place --repo repo --no-snapshot --quiet"
    try fixture.spoilSomeFiles(of: "device", &random)
    _ = try Program.run("cp", ["-a", "device", "spoilt"], in: fixture.cli.directory.url)
    var moments = Moments(4)
    try moments.measure { _ = try fixture.cli.succeed(restore) }
    while let moment = moments.next(using: &random) {
      try fixture.cli.directory.directory.removeTree("device")
      _ = try Program.run("cp", ["-a", "spoilt", "device"], in: fixture.cli.directory.url)
      if try moments.run(fixture.cli, restore, at: moment) { moments.count += 1 }
      try fixture.expectOldOrNew("killed after \(moment) s", mayLackDatabase: true)
      _ = try fixture.cli.succeed("recover --root device --quiet")
      try fixture.expectOldOrNew("recovered")
      _ = try fixture.cli.succeed(restore)
      // The index of a changed database's log was removed, which this policy includes.
      _ = try fixture.cli.succeed(restore)
      for container in try fixture.cli.containers(of: "original") {
        let inner = ByteString(
          container.realPath.bytes.dropFirst(fixture.cli.directory.path("original").count + 1))
        let differences = try ChangeDetector.differences(
          fixture.cli.directory, ByteString("original").appending(inner),
          ByteString("device").appending(inner))
        #expect(differences.isEmpty, "\(container.path): \(differences)")
      }
    }
    #expect(moments.count == 4, "in \(moments.round) rounds")
  }
}

extension DeviceRestoreFixture {
  /// Changes the content of every third of the apps' own files. Without its bundle and the
  /// platform's metadata an app would not be recognized.
  func spoilSomeFiles(of device: String, _ random: inout Seeded) throws {
    for path in try files(of: device)
    where (path.contains("/Documents/") || path.contains("/Library/"))
      && !path.contains("/Bundle/") && !path.hasSuffix("-shm")
      && Int.random(in: 0..<3, using: &random) == 0
    {
      try cli.directory.write("spoilt \(path)", at: ByteString("\(device)/\(path)"))
    }
  }

  /// Expects each file of the containers to have its bytes from `spoilt` or from `original`, and
  /// the bytes from `spoilt` to be in place or in the trash.
  ///
  /// - Parameter mayLackDatabase: whether a database may be missing while its log is exchanged.
  func expectOldOrNew(_ what: String, mayLackDatabase: Bool = false) throws {
    var kept: Set<[UInt8]> = []
    for path in try files(of: "device", "/.sandboxctl/trash") {
      kept.insert(try cli.directory.read(ByteString("device/.sandboxctl/trash/\(path)")))
    }
    // The index of a database's log is removed with the log.
    for path in try files(of: "spoilt") where !path.hasSuffix("-shm") {
      let old = try cli.directory.read(ByteString("spoilt/\(path)"))
      if mayLackDatabase, kept.contains(old),
        (try? Directory.open(path: cli.directory.path(ByteString("device/\(path)").parent)).status(
          ByteString(path).lastComponent ?? "")) == nil
      {
        continue
      }
      let found = try cli.directory.read(ByteString("device/\(path)"))
      if found == old { continue }
      #expect(found == (try cli.directory.read(ByteString("original/\(path)"))), "\(what): \(path)")
      #expect(kept.contains(old), "\(what): \(path) is lost")
    }
  }

  /// Returns the files below a directory of a device whose names are text, except staged files and
  /// the program's own.
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
