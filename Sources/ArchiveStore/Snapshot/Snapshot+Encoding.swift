package import Codecs
internal import SystemIO

extension Snapshot {
  /// Returns the stored bytes: line 1 as JSON.
  func encode() -> [UInt8] { json.compactBytes + [UInt8(ascii: "\n")] }

  /// The stored document (docs/repository-format.md, "Snapshot"). The head comes first, so that it
  /// can be read without the tables.
  package var json: JSON {
    var members = identityMembers() + runMembers()
    members.add("device", device.json)
    members.add("apps", .array(apps) { $0.json }, unless: apps.isEmpty)
    return .object(members + findingMembers() + unknown)
  }

  private func identityMembers() -> [JSON.Member] {
    var members: [JSON.Member] = []
    members.add("format", .string(Self.format))
    members.add("version", .count(Self.version))
    members.add("repository", .string(repository.hex))
    members.add("source", .string(source.hex))
    members.add("sequence", .count(sequence))
    members.add("time", .string(time.rfc3339))
    members.add("host", .string(host))
    members.add("user", .string(user))
    members.add("reason", .string(reason.rawValue))
    members.add("tree", .string(tree.digest.hex))
    if let parent { members.add("parent", .string(parent.hex)) }
    return members
  }

  private func runMembers() -> [JSON.Member] {
    var members: [JSON.Member] = []
    members.add("policy", ["name": .string(policy.name), "digest": .string(policy.digest.hex)])
    members.add("program", .string(program))
    members.add("duration_ms", .count(durationMilliseconds))
    if let original {
      members.add(
        "original",
        ["repository": .string(original.repository.hex), "id": .string(original.id.hex)])
    }
    members.add("totals", totals.json)
    members.add("scope", scope.json)
    members.add("tags", .array(tags) { .string($0) }, unless: tags.isEmpty)
    return members
  }

  private func findingMembers() -> [JSON.Member] {
    var members: [JSON.Member] = []
    members.add("classes", .array(classes) { $0.json }, unless: classes.isEmpty)
    members.add("users", .array(users) { $0.json }, unless: users.isEmpty)
    members.add("groups", .array(groups) { $0.json }, unless: groups.isEmpty)
    members.add("left_out", .array(excluded) { $0.json }, unless: excluded.isEmpty)
    members.add("unreadable", .array(unreadable) { $0.json }, unless: unreadable.isEmpty)
    members.add("warnings", .array(warnings) { $0.json }, unless: warnings.isEmpty)
    members.add(
      "mounts", .array(mounts) { .pathObject($0) }, unless: mounts.isEmpty)
    members.add("databases", .array(databases) { $0.json }, unless: databases.isEmpty)
    return members
  }
}

extension JSON {
  /// Returns an object with a path, followed by more members.
  fileprivate static func pathObject(_ path: ByteString, _ more: [JSON.Member] = []) -> JSON {
    var members: [JSON.Member] = []
    members.add("path", path: path)
    return .object(members + more)
  }
}

extension Scope {
  fileprivate var json: JSON {
    switch self {
    case .device: ["kind": "device"]
    case .apps(let apps): ["kind": "apps", "apps": .array(apps) { .string($0) }]
    }
  }
}

extension DeviceRecord {
  fileprivate var json: JSON {
    var members: [JSON.Member] = []
    members.add("identity", .string(identity))
    members.add("platform", .string(platform))
    members.add("layout", .string(layout))
    members.add("root", path: root)
    if let osVersion { members.add("os_version", .string(osVersion)) }
    members.add("containers", .array(containers) { $0.json }, unless: containers.isEmpty)
    return .object(members)
  }
}

extension ContainerRecord {
  fileprivate var json: JSON {
    var more: [JSON.Member] = []
    if let uuid { more.add("uuid", .string(uuid)) }
    if let revision { more.add("revision", .string(revision)) }
    more.add("real_path", path: realPath)
    return .pathObject(path, more)
  }
}

extension AppRecord {
  var json: JSON {
    var members: [JSON.Member] = []
    members.add("id", .string(identifier))
    if let name { members.add("name", .string(name)) }
    if let version { members.add("version", .string(version)) }
    if let build { members.add("build", .string(build)) }
    members.add("containers", .array(containers) { .pathObject($0) }, unless: containers.isEmpty)
    members.add(
      "groups", .array(groups) { ["id": .string($0.identifier), "known": .bool($0.isKnown)] },
      unless: groups.isEmpty)
    if let flatpak { members.add("flatpak", flatpak.json) }
    return .object(members)
  }
}

extension FlatpakRecord {
  fileprivate var json: JSON {
    var members: [JSON.Member] = []
    members.add("scope", .string(scope))
    members.add("arch", .string(architecture))
    members.add("branch", .string(branch))
    members.add("commit", .string(commit))
    if let origin { members.add("origin", .string(origin)) }
    if let url { members.add("url", .string(url)) }
    if let runtime { members.add("runtime", .string(runtime)) }
    return .object(members)
  }
}

extension Totals {
  fileprivate var json: JSON {
    let classes = JSON.array(classes) {
      ["name": .string($0.name), "files": .count($0.files), "bytes": .count($0.bytes)]
    }
    return [
      "entries": .count(entries), "files": .count(files), "bytes": .count(bytes),
      "stored": .count(stored), "classes": classes,
    ]
  }
}

extension ClassRun {
  fileprivate var json: JSON { .pathObject(path, [JSON.Member("class", .string(name))]) }
}

extension NameRecord {
  fileprivate var json: JSON { ["id": .integer(Int64(id)), "name": .string(name)] }
}

extension Exclusion {
  fileprivate var json: JSON {
    var members = [
      JSON.Member("rule", .string(rule)), JSON.Member("files", .count(files)),
      JSON.Member("bytes", .count(bytes)),
    ]
    if let entry = try? directory?.encoded() {
      members.append(JSON.Member("directory", .string(Base64.encode(entry))))
    }
    return .pathObject(path, members)
  }
}

extension PathNote {
  fileprivate var json: JSON { .pathObject(path, [JSON.Member("note", .string(note))]) }
}

extension DatabaseRecord {
  fileprivate var json: JSON { .pathObject(path, [JSON.Member("how", .string(how))]) }
}
