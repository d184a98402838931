internal import Codecs
public import SystemIO

/// The device that was backed up.
public struct DeviceRecord: Hashable, Sendable {
  /// The unique identity of the device.
  public var identity: String
  public var platform: String
  public var layout: String
  /// The root directory of the device.
  public var root: ByteString
  public var osVersion: String?
  public var containers: [Container]

  /// Creates a record.
  public init(
    identity: String, platform: String, layout: String, root: ByteString,
    osVersion: String? = nil, containers: [Container] = []
  ) {
    self.identity = identity
    self.platform = platform
    self.layout = layout
    self.root = root
    self.osVersion = osVersion
    self.containers = containers
  }
}

extension DeviceRecord {
  /// A container and its location.
  public struct Container: Hashable, Sendable {
    /// The logical path of the container.
    public var path: ByteString
    public var uuid: String?
    /// The name of the revision, if the layout has revisions.
    public var revision: String?
    /// The path on the device at the time of the run.
    public var realPath: ByteString

    /// Creates a record.
    public init(
      path: ByteString, uuid: String? = nil, revision: String? = nil, realPath: ByteString
    ) {
      self.path = path
      self.uuid = uuid
      self.revision = revision
      self.realPath = realPath
    }
  }
}

/// An app that was backed up.
public struct AppRecord: Hashable, Sendable {
  public var identifier: String
  public var name: String?
  public var version: String?
  public var build: String?
  /// The logical paths of its containers.
  public var containers: [ByteString]
  /// The groups in which it shares data.
  public var groups: [AppRecord.Group] = []
  /// The installation source of a Flatpak app.
  public var flatpak: AppRecord.Flatpak?

  /// Creates a record.
  public init(
    identifier: String, name: String? = nil, version: String? = nil, build: String? = nil,
    containers: [ByteString] = []
  ) {
    self.identifier = identifier
    self.name = name
    self.version = version
    self.build = build
    self.containers = containers
  }
}

extension AppRecord {
  /// The membership of an app in a group.
  public struct Group: Hashable, Sendable {
    /// The identifier of the group.
    public var identifier: String
    /// Whether the membership is known from an entitlement or a policy, not guessed.
    public var isKnown: Bool

    /// Creates a record.
    public init(identifier: String, isKnown: Bool) {
      self.identifier = identifier
      self.isKnown = isKnown
    }
  }

  /// The installed version of a Flatpak app and its source.
  public struct Flatpak: Hashable, Sendable {
    /// The installation: `user` or `system`.
    public var scope: String
    public var architecture: String
    public var branch: String
    /// The checksum of the deployed commit.
    public var commit: String
    /// The remote's name and URL, if known.
    public var origin: String?
    public var url: String?
    public var runtime: String?

    /// Creates a record.
    public init(
      scope: String, architecture: String, branch: String, commit: String, origin: String? = nil,
      url: String? = nil, runtime: String? = nil
    ) {
      self.scope = scope
      self.architecture = architecture
      self.branch = branch
      self.commit = commit
      self.origin = origin
      self.url = url
      self.runtime = runtime
    }
  }
}

// MARK: - Encoding

extension DeviceRecord {
  var json: JSON {
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

extension DeviceRecord.Container {
  var json: JSON {
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

extension AppRecord.Flatpak {
  var json: JSON {
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

// MARK: - Decoding

extension DeviceRecord {
  init(_ fields: JSONFields) throws(StoreError) {
    self.init(
      identity: try fields.string("identity", default: ""),
      platform: try fields.string("platform", default: ""),
      layout: try fields.string("layout", default: ""), root: try fields.path("root", default: ""),
      osVersion: fields.json["os_version"]?.string,
      containers: try fields.elements("containers") { field throws(StoreError) in
        try Container(field)
      })
  }
}

extension DeviceRecord.Container {
  init(_ fields: JSONFields) throws(StoreError) {
    self.init(
      path: try fields.path("path"), uuid: fields.json["uuid"]?.string,
      revision: fields.json["revision"]?.string, realPath: try fields.path("real_path"))
  }
}

extension AppRecord {
  init(_ fields: JSONFields) throws(StoreError) {
    self.init(
      identifier: try fields.string("id"), name: fields.json["name"]?.string,
      version: fields.json["version"]?.string, build: fields.json["build"]?.string,
      containers: try fields.elements("containers") { field throws(StoreError) in
        try field.path("path")
      })
    groups = try fields.elements("groups") { field throws(StoreError) in
      AppRecord.Group(
        identifier: try field.string("id"), isKnown: field.json["known"]?.bool ?? false)
    }
    if fields.json["flatpak"] != nil { flatpak = try AppRecord.Flatpak(fields.fields("flatpak")) }
  }
}

extension AppRecord.Flatpak {
  init(_ fields: JSONFields) throws(StoreError) {
    self.init(
      scope: try fields.string("scope"), architecture: try fields.string("arch"),
      branch: try fields.string("branch"), commit: try fields.string("commit"),
      origin: fields.json["origin"]?.string, url: fields.json["url"]?.string,
      runtime: fields.json["runtime"]?.string)
  }
}
