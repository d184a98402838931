internal import ArchiveStore
internal import Codecs
internal import DeviceTransaction
internal import SandboxModel

extension Device {
  /// The device as `apps --json` prints it.
  var json: JSON {
    .object(
      JSON.path(root, named: "root") + [
        JSON.Member("layout", .string(layout.rawValue)), JSON.Member("name", .text(name)),
        JSON.Member("platform", .text(platform)), JSON.Member("os_version", .text(osVersion)),
        JSON.Member("identity", .string(identity.description)),
        JSON.Member("apps", .array(apps.map { json(of: $0) })),
        JSON.Member("containers", .array(containers.map(\.json))),
        JSON.Member(
          "groups", .array(containers.filter { $0.kind == .group }.map { json(ofGroup: $0) })),
        JSON.Member("safe_harbors", .array(SafeHarbor.all(on: self).map(\.json))),
        JSON.Member("system_containers", .array(systemContainers.map(\.json))),
        JSON.Member("findings", .array(findings.map(\.json))),
      ])
  }

  /// Returns the members that name the device of an operation and the policy that it applies.
  func members(policy name: String, _ digest: Digest) -> [JSON.Member] {
    [
      JSON.Member("device", .string(identity.description)),
      JSON.Member("layout", .string(layout.rawValue)),
    ] + JSON.path(root, named: "root") + [
      JSON.Member("policy", .string(name)), JSON.Member("policy_digest", .string(digest.hex)),
    ]
  }

  private func json(of app: App) -> JSON {
    [
      "id": .string(app.identifier.description), "name": .text(app.displayName),
      "version": .text(app.version), "build": .text(app.build),
      "installed": .bool(app.isInstalled),
      "containers": .array(containers(of: app).map { .object(JSON.path($0.logicalPrefix)) }),
      "extensions": .array(app.extensions.map(\.json)), "groups": .array(app.groups.map(\.json)),
      "flatpak": app.installation?.json ?? .null,
    ]
  }

  private func json(ofGroup group: Container) -> JSON {
    let members = members(of: group).map { member -> JSON in
      [
        "app": .string(member.app.identifier.description),
        "known": .bool(member.basis != .guessed),
      ]
    }
    return .object(
      [JSON.Member("id", .text(group.identifier?.bytes))] + JSON.path(group.logicalPrefix)
        + [JSON.Member("members", .array(members))])
  }
}

extension Container {
  var json: JSON {
    .object(
      JSON.path(logicalPrefix) + [
        JSON.Member("kind", .string(kind.rawValue)),
        JSON.Member("id", .text(identifier?.bytes)),
        JSON.Member("identified_by", .string(identification.rawValue)),
        JSON.Member("app", .text(owner?.bytes)), JSON.Member("uuid", .text(uuid)),
        JSON.Member("revision", .text(revision)), JSON.Member("readable", .bool(isReadable)),
      ] + JSON.path(absolutePath, named: "real_path"))
  }
}

extension App.Extension {
  var json: JSON {
    .object(
      [
        JSON.Member("id", .string(identifier.description)), JSON.Member("name", .text(displayName)),
        JSON.Member("version", .text(version)), JSON.Member("build", .text(build)),
      ] + JSON.path(path))
  }
}

extension App.GroupMembership {
  var json: JSON {
    let source =
      switch basis {
      case .known(let layout): layout.rawValue
      case .stated: "policy"
      case .guessed: "guessed"
      }
    return [
      "id": .string(group.description), "known": .bool(isKnown), "source": .string(source),
    ]
  }
}

extension App.FlatpakInstallation {
  var json: JSON {
    [
      "scope": .string(scope.rawValue), "arch": .text(architecture), "branch": .text(branch),
      "commit": .text(commit), "origin": .text(origin), "url": .text(remoteURL),
      "runtime": .text(runtime),
    ]
  }
}

extension Device.SystemContainers {
  var json: JSON { .object(JSON.path(path) + [JSON.Member("count", .integer(Int64(count)))]) }
}

extension SafeHarbor {
  var json: JSON {
    .object(
      [
        JSON.Member("app", .text(app)), JSON.Member("since", .string(since.rfc3339)),
        JSON.Member("containers", .array(containers.map { .object(JSON.path($0)) })),
      ] + JSON.path(path))
  }
}

extension Finding {
  var json: JSON {
    .object(
      [
        JSON.Member("severity", .string(severity.rawValue)),
        JSON.Member("code", .string(code.rawValue)),
      ] + JSON.path(path) + [JSON.Member("reason", .string(reason))])
  }
}
