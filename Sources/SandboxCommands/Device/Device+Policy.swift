internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension Device {
  /// Returns the device with the group members that a policy states.
  func stating(groupsOf policy: CompiledPolicy) -> Device {
    let members = policy.groupMembers.map { group, apps in
      (ByteString(group), Set(apps.map { ByteString($0) }))
    }
    return stating(members: Dictionary(uniqueKeysWithValues: members))
  }
}
