import Codecs
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// Restores of whole containers to a device.
struct DeviceRestoreTests {
  @Test func policyEverythingRestoresContainersExactly() throws {
    let fixture = try DeviceRestoreFixture(policy: "everything")
    try fixture.removeContainers(of: "device")
    let report = try fixture.restore("latest --in-place")
    #expect(report["policy"] as? String == "everything")
    let actions = (report["containers"] as? [[String: Any]] ?? []).compactMap {
      $0["fate"] as? String
    }
    #expect(actions.count > 8 && Set(actions) == ["make"])
    for directory: ByteString in [
      "data/Containers/Data/Application", "data/Containers/Data/PluginKitPlugin",
      "data/Containers/Shared/AppGroup", "data/Containers/Bundle/Application",
    ] {
      for name in try Directory.open(
        path: fixture.cli.directory.path("original").appending(directory)
      )
      .names() {
        let container = directory.appending(name)
        try ChangeDetector.expectSame(
          fixture.cli.directory, ByteString("original").appending(container),
          ByteString("device").appending(container))
      }
    }
    // A second run has nothing to restore and nothing to save.
    let again = try fixture.restore("latest --in-place")
    #expect((again["restored"] as? [String: Any])?["files"] as? Int == 0)
    #expect(again["saved"] is NSNull)
  }

  /// A directory restored empty keeps its metadata: an app's private directory stays private.
  @Test(arguments: ["latest --in-place", "latest --to-device other"])
  func directoryRestoredEmptyKeepsItsMetadata(words: String) throws {
    let fixture = try DeviceRestoreFixture()
    try fixture.makeEmptyDevice("other")
    let data: ByteString = "apps/org.example.notebook/data"
    let caches = try Directory.open(
      path: fixture.path(data, of: "device").appending("Library/Caches"))
    try caches.setPermissions(0o2751)
    try caches.attributes.set("user.hidden", to: [1, 0, 2])
    try caches.setModified(Timestamp(seconds: 1_000_000_000, nanoseconds: 7))
    _ = try fixture.cli.succeed("backup --root device --repo repo --quiet")
    let device = words.contains("other") ? "other" : "device"
    if device == "device" { try fixture.removeContainers(of: "device") }
    _ = try fixture.restore(words)
    let restored = try Directory.open(
      path: fixture.path(data, of: device).appending("Library/Caches"))
    let status = try restored.status()
    #expect(status.permissions == 0o2751)
    #expect(status.modified == Timestamp(seconds: 1_000_000_000, nanoseconds: 7))
    #expect(try restored.attributes.value(of: "user.hidden") == [1, 0, 2])
    #expect(try restored.names().isEmpty)
  }

  @Test func platformPolicyRestoresAllButExcludedData() throws {
    let fixture = try DeviceRestoreFixture()
    try fixture.removeContainers(of: "device")
    _ = try fixture.restore("latest --in-place")
    let entries = try fixture.cli.classification(of: "original")
    let tree = ExpectedTree(entries)
    let expected = fixture.cli.directory.path("expected")
    try tree.make(at: expected)
    let empties = try fixture.addEmptyDirectories(entries, tree, to: expected)
    #expect(empties.contains { $0.hasSuffix("data/Library/Caches") })
    #expect(empties.contains { $0.hasSuffix("data/tmp") })
    for container in try fixture.cli.containers(of: "original")
    where tree.stored[container.path] != nil {
      let actual = try fixture.restored(container.path, on: "device")
      let name = container.realPath.lastComponent
      #expect(actual.lastComponent == name || actual.isWithin(fixture.harbor(on: "device")))
      try ChangeDetector.expectSame(
        fixture.cli.directory, ByteString("expected").appending(container.path), actual)
    }
  }

  @Test func anotherDeviceGetsNewContainers() throws {
    let fixture = try DeviceRestoreFixture()
    try fixture.makeEmptyDevice("other")
    let report = try fixture.restore("latest --to-device other")
    let data: ByteString = "apps/org.example.notebook/data"
    let location = try fixture.path(data, of: "other")
    let old = try fixture.path(data, of: "device")
    let uuid = try #require(location.lastComponent)
    #expect(uuid != old.lastComponent && uuid.count == 36)
    // The metadata names the app and the new directory.
    let metadata = try PropertyList(
      reading: try Descriptor.open(
        path: location.appending(".com.apple.mobile_container_manager.metadata.plist")
      ).readAll(limit: 1 << 20) ?? [])
    #expect(metadata["MCMMetadataIdentifier"]?.stringValue == "org.example.notebook")
    #expect(metadata["MCMMetadataUUID"]?.stringValue == uuid.utf8)
    #expect(metadata["MCMMetadataContentClass"]?.integerValue == 2)
    // The link into the same container points to the new container, in the device's own form.
    let link = try Directory.open(path: location.appending("Documents")).target(of: "Latest.md")
    #expect(
      link
        == ByteString("/private/var/mobile/Containers/Data/Application").appending(uuid)
        .appending("Documents/Notes/Recipes.md"))
    let relinked = (report["relinked"] as? [[String: Any]] ?? []).compactMap { $0.path() }
    #expect(relinked == [data.appending("Documents/Latest.md")])
    #expect((report["foreign_links"] as? [Any])?.isEmpty == false)
    let text = try fixture.cli.run("restore latest --to-device other --dry-run --repo repo").errors
    #expect(
      text.contains("note: link adjusted: \(data)/Documents/Latest.md: it pointed"), "\(text)")
    #expect(text.contains("note: link not adjusted: \(data)/Library/"), "\(text)")
    let id = try #require(fixture.cli.snapshots().first)
    let unknown = try fixture.cli.run("restore \(id) --app nobody --to back --repo repo")
    #expect(unknown.errors.contains("hint: the snapshot's apps are 'com."), "\(unknown.errors)")
    // All apps exist with all their containers; the data of an app that was not installed waits.
    let orphan: ByteString = "apps/com.example.podcast/data"
    let names = { (device: String) in try fixture.cli.containers(of: device).map(\.path).sorted() }
    #expect(try names("other") == names("device").filter { $0 != orphan })
    #expect(
      fixture.isThere(fixture.cli.directory.path("other/.sandboxctl/safe-harbor").appending(orphan))
    )
    // The second time the containers are found by identifier, and none is created.
    let again = try fixture.restore("latest --to-device other")
    let actions = (again["containers"] as? [[String: Any]] ?? []).compactMap {
      $0["fate"] as? String
    }
    #expect(Set(actions) == ["merge", "harbor"])
    #expect(try fixture.path(data, of: "other") == location)
    let restored = try #require(again["restored"] as? [String: Any])
    #expect(restored["files"] as? Int == 0 && restored["links"] as? Int == 0, "\(again)")
  }

  @Test func dataOfAMissingAppWaitsInTheSafeHarbor() throws {
    let fixture = try DeviceRestoreFixture()
    try fixture.makeEmptyDevice("other")
    let report = try fixture.restore(
      "latest:apps/\(DeviceRestoreFixture.notebook)/data --to-device other")
    let actions = (report["containers"] as? [[String: Any]] ?? []).compactMap {
      $0["fate"] as? String
    }
    #expect(actions == ["harbor"])
    let waiting = fixture.cli.directory.path(
      "other/.sandboxctl/safe-harbor/apps/org.example.notebook/data")
    #expect(fixture.isThere(waiting.appending("Documents/Notes")))
    let apps = try fixture.cli.json("apps --json --root other")
    let harbors = apps["safe_harbors"] as? [[String: Any]] ?? []
    #expect(harbors.map { $0["app"] as? String } == [DeviceRestoreFixture.notebook])
    let containers = harbors.first?["containers"] as? [[String: Any]] ?? []
    let paths = containers.compactMap { $0.path() }
    #expect(paths == [ByteString("apps/\(DeviceRestoreFixture.notebook)/data")])
    #expect(try fixture.cli.succeed("apps --root other").contains("safe harbor for"))
    #expect((apps["apps"] as? [Any])?.isEmpty == true, "waiting data is no app of the device")
    // It is merged into the waiting data.
    let again = try fixture.restore(
      "latest:apps/\(DeviceRestoreFixture.notebook)/data --to-device other")
    #expect((again["restored"] as? [String: Any])?["files"] as? Int == 0)
  }

  /// Links into waiting data lead to its current location, and later to the container that adopts
  /// it.
  @Test func linksOfWaitingDataLeadToIt() throws {
    let fixture = try DeviceRestoreFixture()
    try fixture.makeEmptyDevice("other")
    let data: ByteString = "apps/org.example.notebook/data"
    _ = try fixture.restore("latest:\(data) --to-device other")
    func requireLink(in container: ByteString) throws {
      let documents = try Directory.open(path: container.appending("Documents"))
      let target = try documents.target(of: "Latest.md")
      #expect(target == container.appending("Documents/Notes/Recipes.md"))
      #expect(fixture.isThere(target))
    }
    try requireLink(in: fixture.harbor(on: "other").appending(data))
    let bundle = try fixture.path("apps/org.example.notebook/bundle", of: "device")
    let report = try fixture.cli.json(
      "install \(bundle)/Notebook.app --root other --repo repo --json")
    let containers = report["containers"] as? [[String: Any]] ?? []
    let links = containers.compactMap { $0["links"] as? [[String: Any]] }.joined()
    #expect(links.compactMap { $0.path() } == [data.appending("Documents/Latest.md")])
    try requireLink(in: fixture.path(data, of: "other"))
    #expect(!fixture.isThere(fixture.harbor(on: "other").appending(data)))
  }

  /// The bundle in the snapshot does not install an app if its class is not restored.
  @Test func dataOfOneClassWaitsForItsApp() throws {
    let fixture = try DeviceRestoreFixture()
    try fixture.makeEmptyDevice("other")
    let report = try fixture.restore("latest --app notebook --class user-data --to-device other")
    let actions = (report["containers"] as? [[String: Any]] ?? []).compactMap {
      $0["fate"] as? String
    }
    #expect(Set(actions) == ["harbor"], "\(actions)")
    let waiting = fixture.harbor(on: "other").appending("apps/org.example.notebook/data")
    #expect(fixture.isThere(waiting.appending("Documents/Notes")))
    let apps = try fixture.cli.json("apps --json --root other")
    let harbors = apps["safe_harbors"] as? [[String: Any]] ?? []
    #expect(harbors.map { $0["app"] as? String } == [DeviceRestoreFixture.notebook])
    let made = try Directory.open(path: fixture.cli.directory.path("other/data/Containers"))
    #expect(try made.names() == ["Data"])
    let data = try Directory.open(
      path: fixture.cli.directory.path("other/data/Containers/Data/Application"))
    #expect(try data.names().isEmpty)
  }

  /// The file by which the layout identifies a new container is part of the container in any case.
  @Test(arguments: ["latest --class user-data", "latest:apps/org.example.notebook/data/Documents"])
  func aContainerOfWhichAPartIsRestoredIsFound(words: String) throws {
    let fixture = try DeviceRestoreFixture()
    let data: ByteString = "apps/org.example.notebook/data"
    let location = try fixture.path(data, of: "device")
    try Directory.open(path: location.directoryPath).removeTree(location.lastComponent ?? "")
    _ = try fixture.restore("\(words) --to-device device")
    let restored = try fixture.path(data, of: "device")
    #expect(fixture.isThere(restored.appending("Documents/Notes")))
    #expect(!fixture.isThere(restored.appending("Library/Preferences")))
    let again = try fixture.restore("\(words) --to-device device")
    #expect((again["restored"] as? [String: Any])?["files"] as? Int == 0)
    #expect(try fixture.path(data, of: "device") == restored)
  }
}

extension DeviceRestoreFixture {
  func harbor(on device: String) -> ByteString {
    cli.directory.path(ByteString(device)).appending(".sandboxctl/safe-harbor")
  }

  /// Returns the location of a restored container: its path on the device, or the safe harbor.
  func restored(_ container: ByteString, on device: String) throws -> ByteString {
    let found = try cli.containers(of: device).first { $0.path == container }?.realPath
    return found ?? harbor(on: device).appending(container)
  }

  /// Adds to an expected tree the directories that are restored empty, as they were on the device:
  /// the topmost excluded ones whose `restore` requires it. Returns their logical paths.
  func addEmptyDirectories(
    _ entries: [ClassifiedEntry], _ tree: ExpectedTree, to expected: ByteString
  ) throws -> [String] {
    var added: [String] = []
    for entry in entries where entry.type == "directory" && entry.restore == "recreate-empty" {
      let above = entry.path.directoryPath
      guard tree.stored[entry.path] == nil, let parent = tree.stored[above] else { continue }
      let directory = try Directory.open(path: expected.appending(above))
      let made = try directory.makeDirectory(entry.path.lastComponent ?? "")
      let original = try Directory.open(path: entry.realPath).status()
      try made.setPermissions(original.permissions)
      try made.setModified(original.modified)
      try directory.setModified(try Directory.open(path: parent.realPath).status().modified)
      added.append("\(entry.path)")
    }
    return added
  }
}

/// Restores that do not fit on a device.
@Suite(.serialized, .enabled(if: (try? Mount.isPermitted()) ?? false))
struct DeviceRestoreSpaceTests {
  @Test func restoreThatDoesNotFitIsNotStarted() throws {
    let fixture = try DeviceRestoreFixture()
    let data = try fixture.path("apps/org.example.notebook/data", of: "device")
    var random = Seeded(7)
    let file = try Directory.open(path: data.appending("Documents")).create("large")
    try file.write(random.bytes(20_000_000))
    try file.close()
    _ = try fixture.cli.succeed("backup --root device --repo repo --quiet")
    let mount = try Mount(
      on: fixture.cli.directory.directory, at: fixture.cli.directory.path, "small")
    defer { withExtendedLifetime(mount) {} }
    try fixture.makeEmptyDevice("small/other")
    let outcome = try fixture.cli.run("restore latest --to-device small/other --repo repo")
    #expect(outcome.code == 1)
    #expect(outcome.errors.contains("are needed, but only"), "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: free space on the volume"))
    #expect(try fixture.cli.containers(of: "small/other").isEmpty)
    #expect(try fixture.cli.snapshots().count == 2, "no snapshot was made either")
    // A part of the snapshot fits.
    _ = try fixture.cli.succeed("restore latest --app reader --to-device small/other --repo repo")
  }
}
