/** The agents that are connected to the editor by their IDE protocol, which the user can pause. */

import type { PageState } from "../page";
import { Alert, Dim, Do, Line } from "../parts";
import { useRequest } from "../state";
import { rpc } from "../transport";

export function Bridges({ state }: { state: PageState | undefined }) {
  const { data, error, reload } = useRequest("connectedAgents", {}, ["didChangeBridges"]);
  const isPaused = !data?.isPaused;
  return state?.server && data ? (
    <Line>
      <Dim>
        {data.isPaused ? "Paused: no agent follows" : `${data.agents.join(", ") || "No agent"} follows`} the focus and selection of the editor.
      </Dim>
      {!state.readOnly && <Do label={isPaused ? "Pause" : "Resume"} run={() => rpc("connectedAgents", { isPaused }).then(reload)} />}
      <Alert error={error} />
    </Line>
  ) : null;
}
